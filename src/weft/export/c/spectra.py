"""Eigenvalues, Schur forms and singular values, as functions in C.

The texts are templates, which matrices.py fills in. C is the complex dtype of T. SET(w, k, x)
stores a complex eigenvalue: in one array for complex T, in two for real T. RABS takes real numbers
only, and `if (PAIRS)` is a line for real T only.

Sources: Golub and Van Loan, "Matrix Computations", 4th edition, sections 7.4 to 7.6, 8.3 and 8.6;
LAPACK's working notes for the form of its results.
"""

# Jacobi's rotations of a Hermitian matrix. The phase of an element makes its pair a real one.
SYEVD = """\
static void NAME(ptrdiff_t n, bool lower, T *a, T *v, P *values, int32_t *info) {
  *info = 0;
  for (ptrdiff_t i = 0; i < n; ++i) {
    a[i * n + i] = REAL(a[i * n + i]);
    for (ptrdiff_t j = 0; j < n; ++j) {
      v[i * n + j] = i == j ? 1 : 0;
      if (j > i && lower) a[i * n + j] = CONJ(a[j * n + i]);
      if (j < i && !lower) a[i * n + j] = CONJ(a[j * n + i]);
    }
  }
  const int power = NORMALIZE(n * n, a);
  for (int sweep = 0; sweep < 60; ++sweep) {
    P off = 0, all = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
      for (ptrdiff_t j = 0; j < n; ++j) {
        const P size = ABS(a[i * n + j]);
        all += size * size;
        if (i != j) off += size * size;
      }
    if (!(off > all * EPS * EPS)) break;
    for (ptrdiff_t p = 0; p < n; ++p) {
      for (ptrdiff_t q = p + 1; q < n; ++q) {
        const P size = ABS(a[p * n + q]);
        if (size == 0) continue;
        const P theta = (REAL(a[q * n + q]) - REAL(a[p * n + p])) / (2 * size);
        const P t = (theta < 0 ? -1 : 1) / (RABS(theta) + SQRT(1 + theta * theta));
        const P c = 1 / SQRT(1 + t * t);
        const T s = t * c * (a[p * n + q] / size);
        for (ptrdiff_t k = 0; k < n; ++k) {
          const T x = a[k * n + p], y = a[k * n + q];
          a[k * n + p] = c * x - CONJ(s) * y;
          a[k * n + q] = s * x + c * y;
        }
        for (ptrdiff_t k = 0; k < n; ++k) {
          const T x = a[p * n + k], y = a[q * n + k];
          a[p * n + k] = c * x - s * y;
          a[q * n + k] = CONJ(s) * x + c * y;
          const T z = v[k * n + p], u = v[k * n + q];
          v[k * n + p] = c * z - CONJ(s) * u;
          v[k * n + q] = s * z + c * u;
        }
      }
    }
  }
  for (ptrdiff_t i = 0; i < n; ++i) values[i] = LDEXP(REAL(a[i * n + i]), power);
  for (ptrdiff_t i = 0; i < n; ++i) {
    ptrdiff_t best = i;
    for (ptrdiff_t j = i + 1; j < n; ++j)
      if (values[j] < values[best]) best = j;
    const P value = values[i];
    values[i] = values[best];
    values[best] = value;
    if (best != i) USE_exchange(n, v + i, v + best, n);
  }
}"""
# Rotations of pairs of columns of the matrix, or of its transpose, whichever is tall. What is
# collected of the rotations is the conjugate of the right vectors, as the result has them.
GESDD = """\
static void NAME(ptrdiff_t m, ptrdiff_t n, bool full, T *a, P *values, T *u, T *vt,
                 int32_t *info) {
  const bool tall = m >= n;
  const ptrdiff_t rows = tall ? m : n, count = tall ? n : m, width = full ? rows : count;
  const ptrdiff_t bi = tall ? n : 1, bj = tall ? 1 : n, vi = tall ? 1 : count;
  const ptrdiff_t vj = tall ? count : 1, oi = tall ? width : 1, oj = tall ? 1 : rows;
  T *const v = tall ? vt : u, *const out = tall ? u : vt;
  const int power = NORMALIZE(m * n, a);
  bool again = true;
  *info = 0;
  for (ptrdiff_t i = 0; i < count; ++i)
    for (ptrdiff_t j = 0; j < count; ++j) v[i * vi + j * vj] = i == j ? 1 : 0;
  for (int sweep = 0; again && sweep < 60; ++sweep) {
    again = false;
    for (ptrdiff_t p = 0; p < count; ++p) {
      for (ptrdiff_t q = p + 1; q < count; ++q) {
        P alpha = 0, beta = 0;
        T gamma = 0;
        for (ptrdiff_t i = 0; i < rows; ++i) {
          const T x = a[i * bi + p * bj], y = a[i * bi + q * bj];
          alpha += REAL(CONJ(x) * x);
          beta += REAL(CONJ(y) * y);
          gamma += CONJ(x) * y;
        }
        const P size = ABS(gamma);
        if (alpha < beta) again = true;
        else if (!(size > EPS * SQRT(alpha) * SQRT(beta)) || size == 0) continue;
        else again = true;
        P c = 0;
        T s = 1;
        if (size != 0) {
          const P zeta = (beta - alpha) / (2 * size);
          const P t = (zeta < 0 ? -1 : 1) / (RABS(zeta) + SQRT(1 + zeta * zeta));
          c = 1 / SQRT(1 + t * t);
          s = t * c * (gamma / size);
          if (alpha < beta) {
            s = -c * (gamma / size);
            c = t / SQRT(1 + t * t);
          }
        }
        for (ptrdiff_t i = 0; i < rows; ++i) {
          const T x = a[i * bi + p * bj], y = a[i * bi + q * bj];
          a[i * bi + p * bj] = c * x - CONJ(s) * y;
          a[i * bi + q * bj] = s * x + c * y;
        }
        for (ptrdiff_t i = 0; i < count; ++i) {
          const T x = v[i * vi + p * vj], y = v[i * vi + q * vj];
          v[i * vi + p * vj] = c * x - s * y;
          v[i * vi + q * vj] = CONJ(s) * x + c * y;
        }
      }
    }
  }
  for (ptrdiff_t j = 0; j < width; ++j) {
    P size = 0;
    for (ptrdiff_t i = 0; j < count && i < rows; ++i) size = HYPOT(size, ABS(a[i * bi + j * bj]));
    for (ptrdiff_t i = 0; i < rows; ++i)
      out[i * oi + j * oj] = size > 0 ? a[i * bi + j * bj] / size : 0;
    if (j < count) values[j] = size;
    for (ptrdiff_t e = 0; (j >= count || !(size > EPS * values[0])) && e < rows; ++e) {
      /* No column, or one of length zero: a unit vector that is orthogonal to those before. */
      P rest = 0;
      for (ptrdiff_t i = 0; i < rows; ++i) out[i * oi + j * oj] = i == e ? 1 : 0;
      for (int twice = 0; twice < 2; ++twice) {
        for (ptrdiff_t k = 0; k < j; ++k) {
          T dot = 0;
          for (ptrdiff_t i = 0; i < rows; ++i)
            dot += CONJ(out[i * oi + k * oj]) * out[i * oi + j * oj];
          for (ptrdiff_t i = 0; i < rows; ++i) out[i * oi + j * oj] -= dot * out[i * oi + k * oj];
        }
      }
      for (ptrdiff_t i = 0; i < rows; ++i) rest = HYPOT(rest, ABS(out[i * oi + j * oj]));
      for (ptrdiff_t i = 0; rest > 0 && i < rows; ++i) out[i * oi + j * oj] /= rest;
      if (rest * rest * (P)rows > (P)0.5) break;
    }
  }
  for (ptrdiff_t j = 0; j < count; ++j) values[j] = LDEXP(values[j], power);
}"""
# tau has the vectors of the updates in turn, until the factor of the reflection takes the place.
SYTRD = """\
static void NAME(ptrdiff_t n, bool lower, T *a, P *d, P *e, T *tau, int32_t *info) {
  *info = 0;
  for (ptrdiff_t k = 0; k < n - 1; ++k) {
    const ptrdiff_t i = lower ? k : n - 2 - k, p = lower ? i : i + 1, shift = lower ? 1 : 0;
    const ptrdiff_t low = lower ? i + 1 : 0, high = lower ? n : i + 1;
    T *const head = a + (lower ? i + 1 : i) * n + p;
    const T t = USE_reflect(high - low - 1, head, lower ? n : -n);
    e[i] = REAL(*head);
    d[p] = REAL(a[p * n + p]);
    *head = 1;
    T dot = 0;
    for (ptrdiff_t r = low; r < high; ++r) {
      T s = 0;
      for (ptrdiff_t c = low; c < high; ++c) {
        T item = (c < r) == lower ? a[r * n + c] : CONJ(a[c * n + r]);
        if (c == r) item = REAL(item);
        s += item * a[c * n + p];
      }
      tau[r - shift] = t * s;
      dot += CONJ(t * s) * a[r * n + p];
    }
    for (ptrdiff_t r = low; r < high; ++r) tau[r - shift] -= t / 2 * dot * a[r * n + p];
    for (ptrdiff_t r = low; r < high; ++r)
      for (ptrdiff_t c = lower ? low : r; c < (lower ? r + 1 : high); ++c)
        a[r * n + c] -= a[r * n + p] * CONJ(tau[c - shift]) + tau[r - shift] * CONJ(a[c * n + p]);
    *head = e[i];
    a[p * n + p] = d[p];
    tau[i] = t;
  }
  if (n > 0) {
    const ptrdiff_t last = lower ? n * n - 1 : 0;
    d[lower ? n - 1 : 0] = REAL(a[last]);
    a[last] = REAL(a[last]);
  }
}"""
GEHRD = """\
static void NAME(ptrdiff_t n, T *a, T *tau, int32_t *info) {
  *info = 0;
  for (ptrdiff_t j = 0; j < n - 1; ++j) {
    T *const v = a + (j + 1) * n + j;
    tau[j] = USE_reflect(n - j - 2, v, n);
    for (ptrdiff_t r = 0; r < n; ++r) {
      T *const row = a + r * n + j + 1;
      T s = row[0];
      for (ptrdiff_t k = 1; k < n - j - 1; ++k) s += row[k] * v[k * n];
      s *= tau[j];
      row[0] -= s;
      for (ptrdiff_t k = 1; k < n - j - 1; ++k) row[k] -= s * CONJ(v[k * n]);
    }
    USE_reflect_rows(n - j - 1, n - j - 1, v, n, CONJ(tau[j]), v + 1, n);
  }
}"""
# The orthogonal matrix of `gehrd`, after which `a` has only its Hessenberg form.
HESSENBERG = """\
static void NAME(ptrdiff_t n, T *a, T *tau, T *z, int32_t *info) {
  USE_gehrd(n, a, tau, info);
  for (ptrdiff_t i = 0; i < n * n; ++i) z[i] = i % (n + 1) == 0 ? 1 : 0;
  for (ptrdiff_t j = n - 2; j >= 0; --j) {
    T *const corner = z + (j + 1) * (n + 1);
    USE_reflect_rows(n - j - 1, n - j - 1, a + (j + 1) * n + j, n, tau[j], corner, n);
  }
  for (ptrdiff_t i = 2; i < n; ++i)
    for (ptrdiff_t j = 0; j < i - 1; ++j) a[i * n + j] = 0;
}"""
# One rotation that makes (x, y) a multiple of (1, 0), for complex dtypes: of the rows k and k + 1
# of t from the column `first` on, of the first `rows` of these columns, and of the columns of u.
ROTATE = """\
static void NAME(ptrdiff_t n, ptrdiff_t k, T x, T y, ptrdiff_t first, ptrdiff_t rows, T *t,
                 T *u) {
  const P size = HYPOT(ABS(x), ABS(y));
  if (size == 0) return;
  const T c = x / size, s = y / size;
  for (ptrdiff_t j = first; j < n; ++j) {
    const T p = t[k * n + j], q = t[(k + 1) * n + j];
    t[k * n + j] = CONJ(c) * p + CONJ(s) * q;
    t[(k + 1) * n + j] = c * q - s * p;
  }
  for (ptrdiff_t i = 0; i < rows + n; ++i) {
    T *const pair = (i < rows ? t + i * n : u + (i - rows) * n) + k;
    const T p = pair[0], q = pair[1];
    pair[0] = c * p + s * q;
    pair[1] = CONJ(c) * q - CONJ(s) * p;
  }
}"""
# The place where the active part of a Hessenberg matrix begins; sizes are about 1.
FIND_BLOCK = """\
static ptrdiff_t NAME(ptrdiff_t n, ptrdiff_t last, T *h) {
  for (ptrdiff_t k = last; k > 0; --k) {
    P size = ABS(h[(k - 1) * (n + 1)]) + ABS(h[k * (n + 1)]);
    if (size == 0) size = 1;
    if (ABS(h[k * n + k - 1]) <= ULP * size) {
      h[k * n + k - 1] = 0;
      return k;
    }
  }
  return 0;
}"""
# The QR algorithm with one shift, the eigenvalue of the last block that is nearer to its end.
ITERATE_COMPLEX = """\
static bool NAME(ptrdiff_t n, T *h, T *z) {
  int count = 0;
  for (ptrdiff_t last = n - 1; last > 0;) {
    const ptrdiff_t k0 = USE_find_block(n, last, h);
    if (k0 == last) {
      --last;
      count = 0;
      continue;
    }
    if (++count > 300) return false;
    const T *const end = h + last * n + last;
    const T half = (end[-n - 1] - end[0]) / 2, product = end[-n] * end[-1];
    T shift = end[0];
    if (count % 10 == 0) {
      shift += (P)0.75 * ABS(end[-1]);
    } else {
      const T root = CSQRT(half * half + product);
      const T most = ABS(half + root) > ABS(half - root) ? half + root : half - root;
      if (most != 0) shift -= product / most;
    }
    T x = h[k0 * n + k0] - shift, y = h[(k0 + 1) * n + k0];
    for (ptrdiff_t k = k0; k < last; ++k) {
      const ptrdiff_t rows = k + 3 < last + 1 ? k + 3 : last + 1;
      USE_rotate(n, k, x, y, k > k0 ? k - 1 : k, rows, h, z);
      if (k > k0) h[(k + 1) * n + k - 1] = 0;
      if (k + 1 == last) break;
      x = h[(k + 1) * n + k];
      y = h[(k + 2) * n + k];
    }
  }
  return true;
}"""
# A rotation of the rows and columns k and k + 1 that makes their block ((a, b), (c, d)) triangular,
# or one with a = d and b * c < 0. Source: LAPACK's dlanv2.
STANDARDIZE = """\
static void NAME(ptrdiff_t n, ptrdiff_t k, T *h, T *z) {
  T *const top = h + k * n + k, *const low = top + n;
  T a = top[0], b = top[1], c = low[0], d = low[1], cs = 1, sn = 0;
  if (c == 0 || (a == d && (b < 0) != (c < 0) && b != 0)) return;
  if (b == 0) {
    cs = 0;
    sn = 1;
    const T item = d;
    d = a;
    a = item;
    b = -c;
    c = 0;
  } else {
    const T p = (a - d) / 2, most = FMAX(ABS(b), ABS(c));
    const T least = FMIN(ABS(b), ABS(c)) * ((b < 0) == (c < 0) ? 1 : -1);
    const T scale = FMAX(ABS(p), most);
    T x = p / scale * p + most / scale * least;
    if (x >= 4 * ULP) {
      x = p + COPYSIGN(SQRT(scale) * SQRT(x), p);
      a = d + x;
      d -= most / x * least;
      const T size = HYPOT(c, x);
      cs = x / size;
      sn = c / size;
      b -= c;
      c = 0;
    } else {
      const T sigma = b + c, size = HYPOT(sigma, a - d);
      cs = SQRT((1 + ABS(sigma) / size) / 2);
      sn = -(p / (size * cs)) * (sigma < 0 ? -1 : 1);
      const T aa = a * cs + b * sn, bb = b * cs - a * sn;
      const T cc = c * cs + d * sn, dd = d * cs - c * sn;
      b = bb * cs + dd * sn;
      c = cc * cs - aa * sn;
      a = (aa * cs + cc * sn + dd * cs - bb * sn) / 2;
      d = a;
      if (c != 0 && b == 0) {
        b = -c;
        c = 0;
        const T item = cs;
        cs = -sn;
        sn = item;
      } else if (c != 0 && (b < 0) == (c < 0)) {
        const T rb = SQRT(ABS(b)), rc = SQRT(ABS(c)), sum = 1 / SQRT(ABS(b + c));
        const T step = COPYSIGN(rb * rc, c), c1 = rb * sum, s1 = rc * sum, item = cs;
        a += step;
        d -= step;
        b -= c;
        c = 0;
        cs = item * c1 - sn * s1;
        sn = item * s1 + sn * c1;
      }
    }
  }
  for (ptrdiff_t j = k + 2; j < n; ++j) {
    const T p = h[k * n + j], q = h[(k + 1) * n + j];
    h[k * n + j] = cs * p + sn * q;
    h[(k + 1) * n + j] = cs * q - sn * p;
  }
  for (ptrdiff_t i = 0; i < k + n; ++i) {
    T *const pair = (i < k ? h + i * n : z + (i - k) * n) + k;
    const T p = pair[0], q = pair[1];
    pair[0] = cs * p + sn * q;
    pair[1] = cs * q - sn * p;
  }
  top[0] = a;
  top[1] = b;
  low[0] = c;
  low[1] = d;
}"""
# The QR algorithm of Francis, with the two eigenvalues of the last block as shifts.
ITERATE_REAL = """\
static bool NAME(ptrdiff_t n, T *h, T *z) {
  int count = 0;
  for (ptrdiff_t last = n - 1; last > 0;) {
    const ptrdiff_t k0 = USE_find_block(n, last, h);
    if (k0 >= last - 1) {
      if (k0 == last - 1) USE_standardize(n, k0, h, z);
      last = k0 - 1;
      count = 0;
      continue;
    }
    if (++count > 300) return false;
    const T *const end = h + last * n + last, *const top = h + k0 * n + k0;
    T sum = end[-n - 1] + end[0], product = end[-n - 1] * end[0] - end[-n] * end[-1];
    if (count % 10 == 0) {
      const T size = ABS(end[-1]) + ABS(end[-n - 2]);
      sum = (T)1.5 * size;
      product = size * size;
    }
    T v[3] = {top[0] * top[0] + top[1] * top[n] - sum * top[0] + product,
              top[n] * (top[0] + top[n + 1] - sum), top[n] * top[2 * n + 1]};
    for (ptrdiff_t k = k0; k < last; ++k) {
      const ptrdiff_t size = k + 2 <= last ? 3 : 2;
      const ptrdiff_t rows = k + 4 < last + 1 ? k + 4 : last + 1;
      const T t = USE_reflect(size - 1, v, 1);
      v[0] = 1;
      for (ptrdiff_t j = k > k0 ? k - 1 : k; j < n; ++j) {
        T s = 0;
        for (ptrdiff_t i = 0; i < size; ++i) s += v[i] * h[(k + i) * n + j];
        for (ptrdiff_t i = 0; i < size; ++i) h[(k + i) * n + j] -= t * s * v[i];
      }
      for (ptrdiff_t i = 0; i < rows + n; ++i) {
        T *const row = (i < rows ? h + i * n : z + (i - rows) * n) + k;
        T s = 0;
        for (ptrdiff_t j = 0; j < size; ++j) s += v[j] * row[j];
        for (ptrdiff_t j = 0; j < size; ++j) row[j] -= t * s * v[j];
      }
      for (ptrdiff_t i = 1; k > k0 && i < size; ++i) h[(k + i) * n + k - 1] = 0;
      for (ptrdiff_t i = 0; i < 3 && k + 1 + i <= last; ++i) v[i] = h[(k + 1 + i) * n + k];
    }
  }
  return true;
}"""
GEES = """\
static void NAME(ptrdiff_t n, T *a, T *z, VALUES, int32_t *chosen, int32_t *info, T *tau) {
  const int power = NORMALIZE(n * n, a);
  const P scale = LDEXP((P)1, power / 2), more = LDEXP((P)1, power - power / 2);
  *chosen = 0;
  USE_hessenberg(n, a, tau, z, info);
  if (!USE_iterate(n, a, z)) *info = 1;
  for (ptrdiff_t i = 0; i < n * n; ++i) a[i] = a[i] * scale * more;
  for (ptrdiff_t k = 0; k < n; ++k) {
    const ptrdiff_t p = k * (n + 1);
    C value = a[p];
    if (k + 1 < n && a[p + n] != 0)
      value = MAKE(REAL(a[p]), SQRT(ABS(a[p + n])) * SQRT(ABS(a[p + 1])));
    if (k > 0 && a[p - 1] != 0)
      value = MAKE(REAL(a[p]), -SQRT(ABS(a[p - 1])) * SQRT(ABS(a[p - n])));
    SET(w, k, value);
  }
}"""
# Powers of two that make the sizes of a row and of its column about equal.
BALANCE = """\
static void NAME(ptrdiff_t n, T *a, P *scale) {
  bool again = true;
  for (ptrdiff_t i = 0; i < n; ++i) scale[i] = 1;
  for (int sweep = 0; again && sweep < 20; ++sweep) {
    again = false;
    for (ptrdiff_t i = 0; i < n; ++i) {
      P column = 0, row = 0, f = 1;
      for (ptrdiff_t j = 0; j < n; ++j) {
        if (j == i) continue;
        column += ABS(a[j * n + i]);
        row += ABS(a[i * n + j]);
      }
      if (!(column > 0 && row > 0 && isfinite(column + row))) continue;
      const P sum = column + row;
      for (; column < row / 2; column *= 4) f *= 2;
      for (; column >= row * 2; column /= 4) f /= 2;
      if (!((column + row) / f < (P)0.95 * sum)) continue;
      again = true;
      scale[i] *= f;
      for (ptrdiff_t j = 0; j < n; ++j) {
        a[i * n + j] /= f;
        a[j * n + i] *= f;
      }
    }
  }
}"""
# Eigenvectors of a triangular matrix t, for complex dtypes: columns of norm 1, whose largest
# element is real, of the matrix u t u^H with rows and columns scaled.
VECTORS = """\
static void NAME(ptrdiff_t n, bool left, const T *t, const T *u, const P *scale, T *v, T *x) {
  P least = 0;
  for (ptrdiff_t i = 0; i < n * n; ++i)
    if (ABS(t[i]) > least) least = ABS(t[i]);
  least = least > 0 ? ULP * least : 1;
  for (ptrdiff_t k = 0; k < n; ++k) {
    for (ptrdiff_t i = 0; i < n; ++i) x[i] = i == k ? 1 : 0;
    for (ptrdiff_t step = 1; step < (left ? n - k : k + 1); ++step) {
      const ptrdiff_t i = left ? k + step : k - step;
      T s = 0, d = t[i * n + i] - t[k * n + k];
      if (ABS(d) < least) d = least;
      for (ptrdiff_t j = left ? k : i + 1; j < (left ? i : k + 1); ++j)
        s += (left ? CONJ(t[j * n + i]) : t[i * n + j]) * x[j];
      x[i] = -s / (left ? CONJ(d) : d);
      const P size = ABS(x[i]);
      for (ptrdiff_t j = 0; size > 1e10f && j < n; ++j) x[j] /= size;
    }
    P length = 0;
    ptrdiff_t most = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
      T s = 0;
      for (ptrdiff_t j = left ? k : 0; j < (left ? n : k + 1); ++j) s += u[i * n + j] * x[j];
      v[i * n + k] = left ? s / scale[i] : s * scale[i];
      length = HYPOT(length, ABS(v[i * n + k]));
      if (ABS(v[i * n + k]) > ABS(v[most * n + k])) most = i;
    }
    const T phase = CONJ(v[most * n + k]) / ABS(v[most * n + k]) / length;
    for (ptrdiff_t i = 0; i < n; ++i) v[i * n + k] *= phase;
    v[most * n + k] = REAL(v[most * n + k]);
  }
}"""
# A real Schur form as a complex one: t and u become triangular and unitary.
TRIANGULARIZE = """\
static void NAME(ptrdiff_t n, T *t, T *u) {
  for (ptrdiff_t k = 0; k < n - 1; ++k) {
    const ptrdiff_t p = k * (n + 1);
    if (t[p + n] == 0) continue;
    const P a = REAL(t[p]), b = REAL(t[p + 1]);
    const P size = SQRT(RABS(b)) * SQRT(RABS(REAL(t[p + n])));
    USE_rotate(n, k, b, MAKE(0, size), k, k + 2, t, u);
    t[p] = MAKE(a, size);
    t[p + n] = 0;
    t[p + n + 1] = MAKE(a, -size);
  }
}"""
# In real matrices a real eigenvalue has real vectors, and pairs of values have pairs of vectors.
CONJUGATE = """\
static void NAME(ptrdiff_t n, const T *t, T *v) {
  for (ptrdiff_t k = 0; k < n; ++k) {
    const P size = IMAG(t[k * (n + 1)]);
    P length = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
      if (size == 0) v[i * n + k] = REAL(v[i * n + k]);
      if (size < 0) v[i * n + k] = CONJ(v[i * n + k - 1]);
      length = HYPOT(length, ABS(v[i * n + k]));
    }
    for (ptrdiff_t i = 0; size == 0 && i < n; ++i) v[i * n + k] /= length;
  }
}"""
GEEV = """\
static void NAME(ptrdiff_t n, bool left, bool right, T *a, VALUES, C *vl, C *vr, int32_t *info,
                 C *t, C *u, C *x, T *z, T *tau, P *scale) {
  const int power = NORMALIZE(n * n, a);
  const P size = LDEXP((P)1, power / 2), more = LDEXP((P)1, power - power / 2);
  USE_balance(n, a, scale);
  USE_hessenberg(n, a, tau, z, info);
  if (!USE_iterate(n, a, z)) *info = 1;
  for (ptrdiff_t i = 0; i < n * n; ++i) {
    t[i] = a[i];
    u[i] = z[i];
  }
  if (PAIRS) USE_COMPLEX_triangularize(n, t, u);
  for (ptrdiff_t k = 0; k < n; ++k) SET(w, k, t[k * (n + 1)] * size * more);
  for (int side = 0; side < 2; ++side) {
    C *const v = side == 0 ? vl : vr;
    if (!(side == 0 ? left : right)) continue;
    USE_COMPLEX_vectors(n, side == 0, t, u, scale, v, x);
    if (PAIRS) USE_COMPLEX_conjugate(n, t, v);
  }
}"""

SPECTRA = {
    "syevd": SYEVD, "gesdd": GESDD, "sytrd": SYTRD, "gehrd": GEHRD, "hessenberg": HESSENBERG,
    "rotate": ROTATE, "find_block": FIND_BLOCK, "iterate_complex": ITERATE_COMPLEX,
    "standardize": STANDARDIZE, "iterate_real": ITERATE_REAL, "gees": GEES, "balance": BALANCE,
    "vectors": VECTORS, "triangularize": TRIANGULARIZE, "conjugate": CONJUGATE, "geev": GEEV,
}  # fmt: skip
