// Elements of arrays put into lanes of vectors, and taken back, for each width of those: see lanes.h.

#define WEFT_LANES "moves.h"
#include "widths.h"
