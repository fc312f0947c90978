// Included once for each width of vectors: arrays whose elements lie side by side, each array in a lane
// of vectors of kBytes.

template <class T>
using Lanes = typename Vector<T, kBytes>::V;
template <class T>
constexpr int64_t kLanes = Vector<T, kBytes>::kLanes;

// Puts `count` elements of each array into the lanes of vectors, for which there has to be room for
// a vector of a lane's elements at least; arrays are `stride` apart, and lanes from `used` on have the
// last of them again.
void LoadLanes(const float* from, int64_t stride, int64_t count, int64_t used, Lanes<float>* to);
void LoadLanes(const double* from, int64_t stride, int64_t count, int64_t used, Lanes<double>* to);

// Takes them back.
void StoreLanes(const Lanes<float>* from, int64_t stride, int64_t count, int64_t used, float* to);
void StoreLanes(const Lanes<double>* from, int64_t stride, int64_t count, int64_t used, double* to);
