// float32 of the digits of bfloat16 to that: the upper half of the bits.
func.func private @bf16.cut_SHAPE(%0: tensor<f32>) -> tensor<bf16> {
  %1 = stablehlo.bitcast_convert %0 : (tensor<f32>) -> tensor<ui32>
  %2 = stablehlo.constant dense<16> : tensor<ui32>
  %3 = stablehlo.shift_right_logical %1, %2 : tensor<ui32>
  %4 = stablehlo.convert %3 : (tensor<ui32>) -> tensor<ui16>
  %5 = stablehlo.bitcast_convert %4 : (tensor<ui16>) -> tensor<bf16>
  return %5 : tensor<bf16>
}
// Rounded, halves to even; NaN is one again, unless the carry reaches its sign.
func.func private @bf16.round_SHAPE(%0: tensor<f32>) -> tensor<bf16> {
  %1 = stablehlo.bitcast_convert %0 : (tensor<f32>) -> tensor<ui32>
  %2 = stablehlo.constant dense<16> : tensor<ui32>
  %3 = stablehlo.shift_right_logical %1, %2 : tensor<ui32>
  %4 = stablehlo.constant dense<1> : tensor<ui32>
  %5 = stablehlo.and %3, %4 : tensor<ui32>
  %6 = stablehlo.constant dense<32767> : tensor<ui32>
  %7 = stablehlo.add %1, %6 : tensor<ui32>
  %8 = stablehlo.add %7, %5 : tensor<ui32>
  %9 = stablehlo.bitcast_convert %8 : (tensor<ui32>) -> tensor<f32>
  %10 = call @bf16.cut_SHAPE(%9) : (tensor<f32>) -> tensor<bf16>
  return %10 : tensor<bf16>
}
// The same, whatever bits NaN has.
func.func private @bf16.any_SHAPE(%0: tensor<f32>) -> tensor<bf16> {
  %1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
  %2 = stablehlo.compare NE, %0, %0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %3 = stablehlo.select %2, %1, %0 : tensor<i1>, tensor<f32>
  %4 = call @bf16.round_SHAPE(%3) : (tensor<f32>) -> tensor<bf16>
  return %4 : tensor<bf16>
}
