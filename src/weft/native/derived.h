// Written by tools/make_formulas.py, from the formulas of primitives/.

constexpr double kTable0[] = {-0.16666666663878466, 0.008333332768305071, -0.00019841086452511645,
    2.753645532432107e-06, -2.407999974163878e-08};
constexpr double kTable1[] = {1.0000000000182503, -0.11135673956026519, 0.0010748300703641667};
constexpr double kTable2[] = {1.0, -0.4446900714230086, 0.015971502046276603};
constexpr double kTable3[] = {-0.333333332988677, 0.199999913424741, -0.142853521288634,
    0.111051339539788, -0.090394660482064, 0.0742750313090291, -0.0578314807122139,
    0.0386392696068696, -0.0195234180464221, 0.00632959465485889, -0.00096057187018974};
constexpr double kTable4[] = {2.885390081777927, 0.9617966939243295, 0.5770780172485984,
    0.4121984016778474, 0.3206164151141235, 0.2614433527110439, 0.24292716541903794};
constexpr double kTable5[] = {0.9999999999595618, 0.6931471805568324, 0.24022651213498092,
    0.055504109063258665, 0.009618025613318034, 0.0013333478473685416, 0.00015469729214118296,
    1.5303700711365693e-05};
constexpr double kTable6[] = {0.0416666666666666, -0.001388888888887411, 2.480158728947673e-05,
    -2.7557314351390663e-07, 2.087572321298175e-09, -1.1359647557788195e-11};
constexpr double kTable7[] = {0.00833333333332249, -0.0001984126982985795, 2.7557313707070068e-06,
    -2.5050760253406863e-08, 1.58969099521155e-10};
constexpr double kTable8[] = {0.16666666666666666, 0.008333333333333333, 0.0001984126984126992,
    2.7557319223812314e-06, 2.5052108568688623e-08, 1.6058944542067707e-10, 7.673835861958181e-13};
constexpr double kTable9[] = {0.041666666666666664, 0.0013888888888888913, 2.480158730148192e-05,
    2.7557319390122e-07, 2.087663861207881e-09, 1.1509609797482649e-11};
constexpr double kTable10[] = {0.12837916709551256, -0.3250421072470015, -0.02848174957559851,
    -0.005770270296489442, -2.3763016656650163e-05};
constexpr double kTable11[] = {1.0, 0.39791722395915535, 0.0650222499887673, 0.005081306281875766,
    0.00013249473800432164, -3.960228278775368e-06};
constexpr double kTable12[] = {0.4950479033279558, 0.6613032183603197, 0.5481829563770987,
    0.16125293532571763, -0.15919801351856436, -0.1168500713527517, 0.08885844569460388,
    0.06915350282611302, -0.08114342145656989, -0.02698312626910401, 0.081139956125324,
    -0.019655714832747667, -0.06527132418494581, 0.06434272435049705, 0.025307344556201136,
    -0.07391523654519835};
constexpr double kTable13[] = {0.6666666666666735, 0.3999999999940942, 0.2857142874366239,
    0.22222198432149784, 0.1818357216161805, 0.15313837699209373, 0.14798198605116586};

WEFT_HERE D SineNear(D x) {
  const D t0 = Nearest((x * 0.3183098861837907) + 0.0);
  const D t1 = t0 - 0.0;
  const D t2 = (x - (t1 * 3.141592651605606)) - (t1 * 1.9841871479187034e-09);
  const D t3 = t2 * t2;
  const I t4 = ((I)(t2 + ((t2 * t3) * Polynomial(t3, kTable0)))) ^ ((I)((U)(Whole(t0)) << 63));
  return (D)t4;
}

WEFT_HERE D CosineNear(D x) {
  const D t0 = Nearest((x * 0.3183098861837907) + 0.5);
  const D t1 = t0 - 0.5;
  const D t2 = (x - (t1 * 3.141592651605606)) - (t1 * 1.9841871479187034e-09);
  const D t3 = t2 * t2;
  const I t4 = ((I)(t2 + ((t2 * t3) * Polynomial(t3, kTable0)))) ^ ((I)((U)(Whole(t0)) << 63));
  return (D)t4;
}

WEFT_HERE D SineFar(D x) {
  const D t0 = x * 0.15915494225919247;
  const D t1 = t0 - Nearest(t0);
  const D t2 = x * 8.327028684640414e-10;
  const D t3 = x * 5.69002511952534e-19;
  const D t4 = x * 6.317065083361892e-27;
  const D t5 = ((t2 - Nearest(t2)) + (t3 - Nearest(t3))) + (t4 - Nearest(t4));
  const D t6 = x * 5.595982707708916e-36;
  const D t7 = t5 + (t6 - Nearest(t6));
  const D t8 = Nearest((t1 + t7) * 4.0);
  const I t9 = Whole(t8);
  const D t10 = (((t1 - (t8 * 0.25)) + t7) + (x * 6.551007954373285e-45)) * 6.283185307179586;
  const D t11 = ((t9 & 1) != 0) ? (1.5707963267948966 - Abs(t10)) : t10;
  const D t12 = t11 * t11;
  const D t13 = t11 + ((t11 * t12) * Polynomial(t12, kTable0));
  return ((t9 & 2) != 0) ? (-t13) : t13;
}

WEFT_HERE D CosineFar(D x) {
  const D t0 = x * 0.15915494225919247;
  const D t1 = t0 - Nearest(t0);
  const D t2 = x * 8.327028684640414e-10;
  const D t3 = x * 5.69002511952534e-19;
  const D t4 = x * 6.317065083361892e-27;
  const D t5 = ((t2 - Nearest(t2)) + (t3 - Nearest(t3))) + (t4 - Nearest(t4));
  const D t6 = x * 5.595982707708916e-36;
  const D t7 = t5 + (t6 - Nearest(t6));
  const D t8 = Nearest((t1 + t7) * 4.0);
  const I t9 = (I)((U)Whole(t8) + 1);
  const D t10 = (((t1 - (t8 * 0.25)) + t7) + (x * 6.551007954373285e-45)) * 6.283185307179586;
  const D t11 = ((t9 & 1) != 0) ? (1.5707963267948966 - Abs(t10)) : t10;
  const D t12 = t11 * t11;
  const D t13 = t11 + ((t11 * t12) * Polynomial(t12, kTable0));
  return ((t9 & 2) != 0) ? (-t13) : t13;
}

WEFT_HERE D TangentFar(D x) {
  const D t0 = x * 0.15915494225919247;
  const D t1 = t0 - Nearest(t0);
  const D t2 = x * 8.327028684640414e-10;
  const D t3 = x * 5.69002511952534e-19;
  const D t4 = x * 6.317065083361892e-27;
  const D t5 = ((t2 - Nearest(t2)) + (t3 - Nearest(t3))) + (t4 - Nearest(t4));
  const D t6 = x * 5.595982707708916e-36;
  const D t7 = t5 + (t6 - Nearest(t6));
  const D t8 = Nearest((t1 + t7) * 4.0);
  const I t9 = (Whole(t8) & 1) != 0;
  const D t10 = (((t1 - (t8 * 0.25)) + t7) + (x * 6.551007954373285e-45)) * 6.283185307179586;
  const D t11 = t10 * t10;
  const D t12 = Polynomial(t11, kTable2);
  const D t13 = t10 * Polynomial(t11, kTable1);
  return (t9 ? (-t12) : t13) / (t9 ? t13 : t12);
}

WEFT_HERE D AngleUsual(D y, D x) {
  const D t0 = Abs(y);
  const D t1 = Abs(x);
  const D t2 = Quotient(Least(t0, t1), Largest(t0, t1));
  const D t3 = t2 * t2;
  const D t4 = t2 + ((t2 * t3) * Polynomial(t3, kTable3));
  const D t5 = (t0 > t1) ? (1.5707963267948966 - t4) : t4;
  const I t6 = ((I)((((I)x) < 0) ? (3.141592653589793 - t5) : t5)) | (((I)y) &
      INT64_C(-9223372036854775808));
  return (D)t6;
}

WEFT_HERE D Angle(D y, D x) {
  const D t0 = Abs(y);
  const D t1 = Abs(x);
  const D t2 = Largest(t0, t1);
  const D t3 = (t0 == t1) ? Full(1.0) : Quotient(Least(t0, t1), Least(t2, Full(1e+300)));
  const D t4 = (t2 == 0.0) ? t2 : t3;
  const D t5 = t4 * t4;
  const D t6 = t4 + ((t4 * t5) * Polynomial(t5, kTable3));
  const D t7 = (t0 > t1) ? (1.5707963267948966 - t6) : t6;
  const I t8 = ((I)((((I)x) < 0) ? (3.141592653589793 - t7) : t7)) | (((I)y) &
      INT64_C(-9223372036854775808));
  return (x == x) ? ((y == y) ? ((D)t8) : y) : x;
}

WEFT_HERE D PowerUsual(D x, D y) {
  const I t0 = (I)x;
  const I t1 = ((I)((U)t0 - INT64_C(4604544271217802189))) >> 52;
  const D t2 = (D)((I)((U)t0 - ((I)((U)t1 << 52))));
  const D t3 = (t2 - 1.0) / (t2 + 1.0);
  const D t4 = y * ((t3 * Polynomial(t3 * t3, kTable4)) + Number(t1));
  const D t5 = Nearest(t4);
  const D t6 = Polynomial(t4 - t5, kTable5) * ((D)((I)((U)((I)((U)(Whole(t5)) + 1023)) << 52)));
  return t6;
}

WEFT_HERE D Power(D x, D y) {
  const I t0 = ((y == 0.0) | (x == 1.0)) | ((x == -1.0) & (Abs(y) == INFINITY));
  const I t1 = Nearest(y) == y;
  const D t2 = y * 0.5;
  const D t3 = Abs(x);
  const I t4 = (I)t3;
  const I t5 = ((I)((U)t4 - INT64_C(4604544271217802189))) >> 52;
  const D t6 = (D)((I)((U)t4 - ((I)((U)t5 << 52))));
  const D t7 = (t6 - 1.0) / (t6 + 1.0);
  const D t8 = (t3 < INFINITY) ? ((t7 * Polynomial(t7 * t7, kTable4)) + Number(t5)) : t3;
  const D t9 = y * ((t3 == 0.0) ? Full(-INFINITY) : t8);
  const D t10 = (t9 > 900.0) ? Full(900.0) : ((t9 < -900.0) ? Full(-900.0) : t9);
  const D t11 = Nearest(t10);
  const D t12 = Polynomial(t10 - t11, kTable5) * ((D)((I)((U)((I)((U)(Whole(t11)) + 1023)) << 52)));
  const D t13 = (((t1 | (x >= 0.0)) | (x == -INFINITY)) | (x != x)) ? (((((I)x) < 0) & (t1 &
      (Nearest(t2) != t2))) ? (-t12) : t12) : Full(NAN);
  return t0 ? Full(1.0) : ((y == y) ? t13 : y);
}

WEFT_HERE D SineUsual(D x) {
  const D t0 = Nearest(x * 0.6366197723675814);
  const I t1 = Whole(t0);
  const D t2 = x - (t0 * 1.5707963267341256);
  const D t3 = t0 * 6.077100506303966e-11;
  const D t4 = t2 - t3;
  const D t5 = t0 * 2.0222662487111665e-21;
  const D t6 = t4 - t5;
  const D t7 = (((t2 - t4) - t3) + ((t4 - t6) - t5)) - (t0 * 8.4784276603689e-32);
  const D t8 = t6 + t7;
  const D t9 = t8 * t8;
  const D t10 = t9 * 0.5;
  const D t11 = 1.0 - t10;
  const D t12 = (t6 - t8) + t7;
  const D t13 = ((1.0 - t11) - t10) + (((t9 * t9) * Polynomial(t9, kTable6)) - (t8 * t12));
  const D t14 = t9 * t8;
  const D t15 = ((t9 * ((t12 * 0.5) - (t14 * Polynomial(t9, kTable7)))) - t12) - (t14 *
      -0.16666666666666632);
  const D t16 = ((t1 & 1) != 0) ? (t11 + t13) : (t8 - t15);
  return ((t1 & 2) != 0) ? (-t16) : t16;
}

WEFT_HERE D CosineUsual(D x) {
  const D t0 = Nearest(x * 0.6366197723675814);
  const I t1 = (I)((U)Whole(t0) + 1);
  const D t2 = x - (t0 * 1.5707963267341256);
  const D t3 = t0 * 6.077100506303966e-11;
  const D t4 = t2 - t3;
  const D t5 = t0 * 2.0222662487111665e-21;
  const D t6 = t4 - t5;
  const D t7 = (((t2 - t4) - t3) + ((t4 - t6) - t5)) - (t0 * 8.4784276603689e-32);
  const D t8 = t6 + t7;
  const D t9 = t8 * t8;
  const D t10 = t9 * 0.5;
  const D t11 = 1.0 - t10;
  const D t12 = (t6 - t8) + t7;
  const D t13 = ((1.0 - t11) - t10) + (((t9 * t9) * Polynomial(t9, kTable6)) - (t8 * t12));
  const D t14 = t9 * t8;
  const D t15 = ((t9 * ((t12 * 0.5) - (t14 * Polynomial(t9, kTable7)))) - t12) - (t14 *
      -0.16666666666666632);
  const D t16 = ((t1 & 1) != 0) ? (t11 + t13) : (t8 - t15);
  return ((t1 & 2) != 0) ? (-t16) : t16;
}

WEFT_HERE D TangentUsual(D x) {
  const D t0 = Nearest(x * 0.6366197723675814);
  const I t1 = (Whole(t0) & 1) != 0;
  const D t2 = x - (t0 * 1.5707963267341256);
  const D t3 = t0 * 6.077100506303966e-11;
  const D t4 = t2 - t3;
  const D t5 = t0 * 2.0222662487111665e-21;
  const D t6 = t4 - t5;
  const D t7 = (((t2 - t4) - t3) + ((t4 - t6) - t5)) - (t0 * 8.4784276603689e-32);
  const D t8 = t6 + t7;
  const D t9 = t8 * t8;
  const D t10 = t9 * 0.5;
  const D t11 = 1.0 - t10;
  const D t12 = (t6 - t8) + t7;
  const D t13 = ((1.0 - t11) - t10) + (((t9 * t9) * Polynomial(t9, kTable6)) - (t8 * t12));
  const D t14 = t11 + t13;
  const D t15 = t9 * t8;
  const D t16 = ((t9 * ((t12 * 0.5) - (t15 * Polynomial(t9, kTable7)))) - t12) - (t15 *
      -0.16666666666666632);
  const D t17 = t8 - t16;
  const D t18 = t1 ? (-t14) : t17;
  const D t19 = t1 ? t17 : t14;
  const D t20 = Inverse(t19);
  const D t21 = t18 * t20;
  const D t22 = (t11 - t14) + t13;
  const D t23 = (t8 - t17) - t16;
  const D t24 = (t18 - (t21 * t19)) + ((t1 ? (-t22) : t23) - (t21 * (t1 ? t23 : t22)));
  return t21 + (t24 * t20);
}

WEFT_HERE D HyperbolicSine(D x) {
  const D t0 = Abs(x);
  const D t1 = (t0 > 710.9) ? Full(710.9) : t0;
  const D t2 = Nearest((t1 * 1.4426950408889634) - 0.25);
  const D t3 = (D)((I)((U)((I)((U)(Whole(t2 - 2.0)) + 1023)) << 52));
  const I t4 = (I)((U)((I)((U)(Whole(-2.0 - Least(t2, Full(100.0)))) + 1023)) << 52);
  const D t5 = (D)t4;
  const D t6 = t3 - t5;
  const D t7 = t1 - (t2 * 0.6931471803691238);
  const D t8 = t2 * 1.9082149292705877e-10;
  const D t9 = t7 - t8;
  const D t10 = t9 * t9;
  const D t11 = (t7 - t9) - t8;
  const D t12 = (t10 * 0.5) + (((t10 * t10) * Polynomial(t10, kTable9)) + (t11 * t9));
  const D t13 = (t3 + t5) * (t9 + (((t10 * t9) * Polynomial(t10, kTable8)) + t11));
  const I t14 = ((I)((t1 < 1e-09) ? t1 : ((t6 + ((t6 * t12) + t13)) * 2.0))) | (((I)x) &
      INT64_C(-9223372036854775808));
  return (D)t14;
}

WEFT_HERE D HyperbolicCosine(D x) {
  const D t0 = Abs(x);
  const D t1 = (t0 > 710.9) ? Full(710.9) : t0;
  const D t2 = Nearest((t1 * 1.4426950408889634) - 0.25);
  const D t3 = (D)((I)((U)((I)((U)(Whole(t2 - 2.0)) + 1023)) << 52));
  const I t4 = (I)((U)((I)((U)(Whole(-2.0 - Least(t2, Full(100.0)))) + 1023)) << 52);
  const D t5 = (D)t4;
  const D t6 = t3 + t5;
  const D t7 = t1 - (t2 * 0.6931471803691238);
  const D t8 = t2 * 1.9082149292705877e-10;
  const D t9 = t7 - t8;
  const D t10 = t9 * t9;
  const D t11 = (t7 - t9) - t8;
  const D t12 = (t10 * 0.5) + (((t10 * t10) * Polynomial(t10, kTable9)) + (t11 * t9));
  const D t13 = (t3 - t5) * (t9 + (((t10 * t9) * Polynomial(t10, kTable8)) + t11));
  return (t6 + ((t6 * t12) + t13)) * 2.0;
}

WEFT_HERE D ErrorFunction(D x) {
  const D t0 = Abs(x);
  const D t1 = Least(t0, Full(6.0));
  const I t2 = t0 < 0.84375;
  const D t3 = t1 * t1;
  const D t4 = (t2 ? Polynomial(t3, kTable10) : Full(1.0)) / (t2 ? Polynomial(t3, kTable11) : ((t1 *
      0.5) + 1.0));
  const D t5 = WideExp(-t3) * (t4 * Polynomial(t4 - 0.4766483516483517, kTable12));
  const D t6 = (t1 < 1e-290) ? (t1 * 1.1283791670955126) : (t2 ? (t1 + (t1 * t4)) : (1.0 - t5));
  const D t7 = (x == x) ? ((D)(((I)t6) | (((I)x) & INT64_C(-9223372036854775808)))) : x;
  return t7;
}

WEFT_HERE D LogUsual(D x) {
  const I t0 = (I)x;
  const I t1 = ((I)((U)t0 - INT64_C(4604544271217802189))) >> 52;
  const D t2 = Number(t1);
  const D t3 = ((D)((I)((U)t0 - ((I)((U)t1 << 52))))) - 1.0;
  const D t4 = (t3 * t3) * 0.5;
  const D t5 = t3 / (t3 + 2.0);
  const D t6 = t5 * t5;
  const D t7 = (t5 * (t4 + (t6 * Polynomial(t6, kTable13)))) + (t2 * 1.9082149292705877e-10);
  return (t2 * 0.6931471803691238) - ((t4 - t7) - t3);
}

WEFT_HERE D LogAny(D x) {
  const I t0 = (I)x;
  const I t1 = (t0 > 0) & (t0 < INT64_C(4503599627370496));
  const D t2 = t1 ? __builtin_convertvector(t0, D) : x;
  const I t3 = (I)t2;
  const I t4 = ((I)((U)t3 - INT64_C(4604544271217802189))) >> 52;
  const D t5 = Number(t4);
  const D t6 = ((D)((I)((U)t3 - ((I)((U)t4 << 52))))) - 1.0;
  const D t7 = (t6 * t6) * 0.5;
  const D t8 = t6 / (t6 + 2.0);
  const D t9 = t8 * t8;
  const D t10 = (t8 * (t7 + (t9 * Polynomial(t9, kTable13)))) + (t5 * 1.9082149292705877e-10);
  const D t11 = (t2 < INFINITY) ? ((t5 * 0.6931471803691238) - ((t7 - t10) - t6)) : t2;
  const D t12 = (t3 > 0) ? t11 : ((((I)((U)t3 << 1)) == 0) ? Full(-INFINITY) : Full(NAN));
  return t1 ? (t12 - 744.4400719213812) : t12;
}
