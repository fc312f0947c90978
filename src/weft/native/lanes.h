// Included once for each vector width. Several arrays are processed side by side, one in each lane
// of vectors of kBytes.

template <class T>
using Lanes = typename Vector<T, kBytes>::V;
template <class T>
constexpr int64_t kLanes = Vector<T, kBytes>::kLanes;

// Reads a vector from memory. Clang refuses a call of the function of this name in tiles.h: functions
// that return vectors must be compiled for the processor that their callers are compiled for.
template <class V, class T>
WEFT_INLINE V Load(const T* from) {
  V x;
  std::memcpy(&x, from, sizeof(V));
  return x;
}

// Transposes `count` elements of `used` arrays into vectors, one array a lane. Arrays are `stride`
// apart. Lanes from `used` on repeat the last array. `to` needs memory for at least as many vectors
// as a vector has lanes.
void LoadLanes(const float* from, int64_t stride, int64_t count, int64_t used, Lanes<float>* to);
void LoadLanes(const double* from, int64_t stride, int64_t count, int64_t used, Lanes<double>* to);

// Transposes the vectors back into the arrays.
void StoreLanes(const Lanes<float>* from, int64_t stride, int64_t count, int64_t used, float* to);
void StoreLanes(const Lanes<double>* from, int64_t stride, int64_t count, int64_t used, double* to);
