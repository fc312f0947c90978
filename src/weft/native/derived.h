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
constexpr double kTable13[] = {0.16666666666666666, 0.04166666666665136, 0.008333333333332131,
    0.0013888888905880625, 0.00019841269854465205, 2.4801536390522092e-05, 2.7557279870628042e-06,
    2.761380584523733e-07, 2.5095647978523832e-08};
constexpr double kTable14[] = {0.5999999999999946, 0.4285714285785502, 0.33333332981837743,
    0.272728123808534, 0.23066074577556175, 0.20697501780033842};
constexpr double kTable15[] = {0.08333333333333333, -0.002777777777777778, 0.0007936507936507937,
    -0.0005952380952380953, 0.0008417508417508417, -0.0019175269175269176, 0.00641025641025641,
    -0.029550653594771242, 0.17964437236883057};
constexpr double kTable16[] = {0.07692307692307693, 0.06666666666666667, 0.058823529411764705,
    0.05263157894736842, 0.047619047619047616, 0.043478260869565216, 0.04, 0.037037037037037035,
    0.034482758620689655, 0.03225806451612903};
constexpr double kTable17[] = {0.00034436760689237765, 5.171790908260592e-05,
    -0.00033493161081142234, 0.0002812695154763237, -0.00010976582244684731,
    -1.2741009095484485e-07};
constexpr double kTable18[] = {0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045,
    7.902353232660328e-07, -8.153969367561969e-05, 5.61168275310625e-05, -1.8329116582843375e-05,
    -3.0796134506033047e-09};
constexpr double kTable19[] = {-0.00033679855336635813, -6.972813758365857e-05,
    0.0002772753244959392, -0.00019932570516188847, 6.797780477937208e-05, 1.419062920643967e-07,
    -1.3594048189768693e-05, 8.018470256334202e-06, -2.291481176508095e-06, -3.252473551298454e-10};
constexpr double kTable20[] = {-0.0008618882909167117, 0.0007840392217200666,
    -0.0002990724803031902, -1.4638452578843418e-06, 6.641498215465122e-05, -3.968365047179435e-05,
    1.1375726970678419e-05, 2.507497226237533e-10, -1.6954149536558305e-06, 8.907507532205309e-07,
    -2.292934834000805e-07, 2.956794137544049e-11};
constexpr double kTable21[] = {0.0006494341563786008, 0.00022947209362139917,
    -0.0004691894943952557, 0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07,
    1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06,
    -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08,
    -1.9111168485973655e-08, 2.3928620439808118e-12};
constexpr double kTable22[] = {0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049,
    2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05,
    3.423578734096138e-08, 1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07,
    -2.0477098421990866e-10, -1.409252991086752e-08, 6.228974084922022e-09, -1.3670488396617114e-09,
    9.428356159014678e-13};
constexpr double kTable23[] = {-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454,
    -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05,
    7.64916091608111e-06, -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07,
    -5.752545603517705e-08, 1.1951628599778148e-08, -1.7543241719747647e-11,
    -1.0091543710600413e-09, 4.162792991842583e-10, -8.56390702649298e-11, 6.067215101604758e-14};
constexpr double kTable24[] = {-0.3333333333333333, 0.08333333333333333, -0.014814814814814815,
    0.0011574074074074073, 0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05,
    -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07,
    6.707853543401498e-09, 1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10,
    -2.5514193994946248e-11, -5.830772132550426e-11, 2.4361948020667415e-11,
    -5.0276692801141755e-12, 1.1004392031956135e-13};
constexpr double kTable25[] = {1.2769783815525289, -0.09276382658574592, -0.1660303976152892,
    0.16405128003343034, -0.05422000099205117, -0.008034015081972736, 0.008722653876094503,
    0.0012713389580735082, -0.0014568139519933094, -0.00045434075598725095, 0.00020636724692395621,
    0.00015103874085545062, -1.510006343616514e-06, -3.642169452468224e-05, -1.3492292069646336e-05,
    3.7064809499525125e-06, 5.221722809106433e-06, 1.5114586870906878e-06, -6.889468560670721e-07,
    -8.437327868723199e-07, -2.76229711724544e-07, 1.44199957610496e-07, 1.7946763067392e-07,
    2.6116706271232e-08, -4.501247361024e-08, -1.7167739256832e-08, 4.728557666304e-09,
    2.577852792832e-09};
constexpr double kTable26[] = {0.5772156649015329, -0.12262568426129017, 0.03885856646598897,
    -0.014393317820482393, 0.005764938028975333, -0.0024161927665108103, 0.0010426832556439248,
    -0.00045920266884695804, 0.00020529811719418038, -9.285765407874936e-05, 4.239364373231739e-05,
    -1.9503582841396636e-05, 9.029628390509567e-06, -4.203673632115506e-06, 1.970394454455091e-06,
    -9.265616432709635e-07, 4.2726913381826556e-07, -2.0030416534896636e-07, 1.1155325727539197e-07,
    -5.5375166151065604e-08, 6.391334594150409e-09, -1.0236037431295987e-09, 1.7121188144742398e-08,
    -9.367397072895999e-09, -4.538300681420799e-09, 2.5690044891136e-09, 1.6544314687488e-09,
    -8.553226043392e-10};
constexpr double kTable27[] = {0.3995894876556691, -0.06441063566344568, 0.014213449664599831,
    -0.003570760544169787, 0.0009622289503534665, -0.0002707614660704004, 7.842743106557905e-05,
    -2.318739599562064e-05, 6.960129693840268e-06, -2.113574508362291e-06, 6.477153826788352e-07,
    -1.9998398769213442e-07, 6.21183783446528e-08, -1.9352015890841602e-08, 6.063886775091199e-09,
    -1.9612115582976e-09, 6.226170314752001e-10, -1.552972054528e-10, 4.77359767552e-11,
    -3.38019221504e-11, 1.10941437952e-11};
constexpr double kTable28[] = {0.6666666666666735, 0.3999999999940942, 0.2857142874366239,
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
  const I t6 = ((I)((((I)x) < 0) ? (3.141592653589793 - t5) : t5)) | (((I)y) & INT64_MIN);
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
  const I t8 = ((I)((((I)x) < 0) ? (3.141592653589793 - t7) : t7)) | (((I)y) & INT64_MIN);
  return (x == x) ? ((y == y) ? ((D)t8) : y) : x;
}

WEFT_HERE D PowerUsual(D x, D y) {
  const I t0 = (I)x;
  const I t1 = ((I)((U)t0 - INT64_C(4604544271217802189))) >> 52;
  const D t2 = (D)((I)((U)t0 - (U)((I)((U)t1 << 52))));
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
  const D t6 = (D)((I)((U)t4 - (U)((I)((U)t5 << 52))));
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
  const I t14 = ((I)((t1 < 1e-09) ? t1 : ((t6 + ((t6 * t12) + t13)) * 2.0))) | (((I)x) & INT64_MIN);
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
  return (x == x) ? ((D)(((I)t6) | (((I)x) & INT64_MIN))) : x;
}

WEFT_HERE D Exponential(D r, D low) {
  const D t0 = r + 1.0;
  const D t1 = r * r;
  const D t2 = (t1 * 0.5) + (((t1 * r) * Polynomial(r, kTable13)) + (low + (low * r)));
  return t0 + (((1.0 - t0) + r) + t2);
}

WEFT_HERE D WidePowerUsual(D x, D y) {
  const I t0 = (I)x;
  const I t1 = ((I)((U)t0 - INT64_C(4605975682916830378))) >> 52;
  const D t2 = (D)((I)((U)t0 - (U)((I)((U)t1 << 52))));
  const I t3 = t2 >= 1.224744871391589;
  const D t4 = Number(t1) + (t3 ? Full(0.5849624872207642) : Full(0.0));
  const D t5 = t3 ? Full(1.5) : Full(1.0);
  const D t6 = t2 - t5;
  const D t7 = t2 + t5;
  const D t8 = 1.0 / t7;
  const D t9 = t6 * t8;
  const D t10 = t9 * t9;
  const D t11 = t10 + 3.0;
  const D t12 = t9 * t11;
  const D t13 = t9 * t7;
  const D t14 = ((t6 - t13) - ProductError(t9, t7, t13)) - (t9 * (t2 - (t7 - t5)));
  const D t15 = t8 * t14;
  const D t16 = ((t10 * t10) * Polynomial(t10, kTable14)) + (ProductError(t9, t9, t10) + ((t9 * 2.0)
      * t15));
  const D t17 = ProductError(t9, t11, t12) + ((t15 * t11) + (t9 * (t16 + ((3.0 - t11) + t10))));
  const D t18 = t12 + t17;
  const D t19 = t18 * 0.9617966939259756;
  const D t20 = t4 + t19;
  const D t21 = y * t20;
  const D t22 = Least(Largest(t21, Full(-1080.0)), Full(1030.0));
  const D t23 = Nearest(t22);
  const D t24 = t22 - t23;
  const D t25 = t24 * 0.6931471805599453;
  const D t26 = (t18 * 5.0577616648125907e-17) + ((t17 - (t18 - t12)) * 0.9617966939259756);
  const D t27 = ProductError(t18, Full(0.9617966939259756), t19) + (t26 + (t3 ?
      Full(1.350039202129749e-08) : Full(0.0)));
  const D t28 = (t22 != t21) ? Full(0.0) : (ProductError(y, t20, t21) + (y * ((t19 - (t20 - t4)) +
      t27)));
  const D t29 = ProductError(t24, Full(0.6931471805599453), t25) + ((t24 * 2.3190468138462996e-17) +
      (t28 * 0.6931471805599453));
  const D t30 = t25 + t29;
  const D t31 = t30 + 1.0;
  const D t32 = t30 * t30;
  const D t33 = t29 - (t30 - t25);
  const D t34 = ((t32 * t30) * Polynomial(t30, kTable13)) + (t33 + (t33 * t30));
  const D t35 = Scale(t31 + (((1.0 - t31) + t30) + ((t32 * 0.5) + t34)), t23);
  return t35;
}

WEFT_HERE D WidePower(D x, D y) {
  const I t0 = ((y == 0.0) | (x == 1.0)) | ((x == -1.0) & (Abs(y) == INFINITY));
  const I t1 = Nearest(y) == y;
  const D t2 = y * 0.5;
  const D t3 = Abs(x);
  const D t4 = Least(Largest(y, Full(-1e+30)), Full(1e+30));
  const I t5 = ((I)t3) == 0;
  const I t6 = (I)t3;
  const I t7 = t6 < INT64_C(4503599627370496);
  const I t8 = t7 ? ((I)__builtin_convertvector(t6, D)) : t6;
  const I t9 = ((I)((U)t8 - INT64_C(4605975682916830378))) >> 52;
  const D t10 = (D)((I)((U)t8 - (U)((I)((U)t9 << 52))));
  const I t11 = t10 >= 1.224744871391589;
  const D t12 = Number((t7 ? ((I)((U)t9 - 1074)) : t9)) + (t11 ? Full(0.5849624872207642) :
      Full(0.0));
  const D t13 = t11 ? Full(1.5) : Full(1.0);
  const D t14 = t10 - t13;
  const D t15 = t10 + t13;
  const D t16 = 1.0 / t15;
  const D t17 = t14 * t16;
  const D t18 = t17 * t17;
  const D t19 = t18 + 3.0;
  const D t20 = t17 * t19;
  const D t21 = t17 * t15;
  const D t22 = ((t14 - t21) - ProductError(t17, t15, t21)) - (t17 * (t10 - (t15 - t13)));
  const D t23 = t16 * t22;
  const D t24 = ((t18 * t18) * Polynomial(t18, kTable14)) + (ProductError(t17, t17, t18) + ((t17 *
      2.0) * t23));
  const D t25 = ProductError(t17, t19, t20) + ((t23 * t19) + (t17 * (t24 + ((3.0 - t19) + t18))));
  const D t26 = t20 + t25;
  const D t27 = t26 * 0.9617966939259756;
  const D t28 = t12 + t27;
  const D t29 = t4 * t28;
  const D t30 = Least(Largest(t29, Full(-1080.0)), Full(1030.0));
  const D t31 = Nearest(t30);
  const D t32 = t30 - t31;
  const D t33 = t32 * 0.6931471805599453;
  const D t34 = (t26 * 5.0577616648125907e-17) + ((t25 - (t26 - t20)) * 0.9617966939259756);
  const D t35 = ProductError(t26, Full(0.9617966939259756), t27) + (t34 + (t11 ?
      Full(1.350039202129749e-08) : Full(0.0)));
  const D t36 = ProductError(t4, t28, t29) + (t4 * ((t27 - (t28 - t12)) + t35));
  const D t37 = (t32 * 2.3190468138462996e-17) + (((t30 != t29) ? Full(0.0) : t36) *
      0.6931471805599453);
  const D t38 = ProductError(t32, Full(0.6931471805599453), t33) + t37;
  const D t39 = t33 + t38;
  const D t40 = t39 + 1.0;
  const D t41 = t39 * t39;
  const D t42 = t38 - (t39 - t33);
  const D t43 = ((t41 * t39) * Polynomial(t39, kTable13)) + (t42 + (t42 * t39));
  const D t44 = Scale(t40 + (((1.0 - t40) + t39) + ((t41 * 0.5) + t43)), t31);
  const D t45 = (t5 | (t3 == INFINITY)) ? ((t5 ^ (t4 > 0.0)) ? Full(INFINITY) : Full(0.0)) : t44;
  const D t46 = ((t3 == t3) & (t4 == t4)) ? t45 : Full(NAN);
  const D t47 = (((t1 | (x >= 0.0)) | (x == -INFINITY)) | (x != x)) ? (((((I)x) < 0) & (t1 &
      (Nearest(t2) != t2))) ? (-t46) : t46) : Full(NAN);
  return t0 ? Full(1.0) : ((y == y) ? t47 : y);
}

WEFT_HERE_CALLED D Density(D a, D x) {
  const I t0 = ((I)((U)((I)x) - INT64_C(4604544271217802189))) >> 52;
  const D t1 = __builtin_convertvector(t0, D);
  const D t2 = t1 * 1.9082149292705877e-10;
  const D t3 = ProductError(t1, Full(1.9082149292705877e-10), t2) + (t1 * 1.1612227229362532e-26);
  const D t4 = t2 + t3;
  const D t5 = (x * ((D)((I)((U)((I)(1023 - (U)t0)) << 52)))) - 1.0;
  const D t6 = t5 + 0.0;
  const D t7 = t6 - t5;
  const D t8 = (t5 - (t6 - t7)) + (0.0 - t7);
  const D t9 = t6 + t8;
  const D t10 = t9 + 2.0;
  const D t11 = t10 - t9;
  const D t12 = t8 - (t9 - t6);
  const D t13 = ((t9 - (t10 - t11)) + (2.0 - t11)) + t12;
  const D t14 = t10 + t13;
  const D t15 = t9 / t14;
  const D t16 = t14 * t15;
  const D t17 = ProductError(t14, t15, t16) + ((t13 - (t14 - t10)) * t15);
  const D t18 = t16 + t17;
  const D t19 = -t18;
  const D t20 = t9 + t19;
  const D t21 = t20 - t9;
  const D t22 = ((t9 - (t20 - t21)) + (t19 - t21)) + (t12 + (-(t17 - (t18 - t16))));
  const D t23 = (t20 + t22) / t14;
  const D t24 = t15 + t23;
  const D t25 = t24 * t24;
  const D t26 = t23 - (t24 - t15);
  const D t27 = ProductError(t24, t24, t25) + ((t24 * t26) + (t26 * t24));
  const D t28 = t25 + t27;
  const D t29 = Polynomial(t28, kTable16);
  const D t30 = t29 * t28;
  const D t31 = t27 - (t28 - t25);
  const D t32 = ProductError(t29, t28, t30) + (t29 * t31);
  const D t33 = t30 + t32;
  const D t34 = t33 + 0.09090909090909091;
  const D t35 = t34 - t33;
  const D t36 = ((t33 - (t34 - t35)) + (0.09090909090909091 - t35)) + ((t32 - (t33 - t30)) +
      -2.523234146875356e-18);
  const D t37 = t34 + t36;
  const D t38 = t37 * t28;
  const D t39 = ProductError(t37, t28, t38) + ((t37 * t31) + ((t36 - (t37 - t34)) * t28));
  const D t40 = t38 + t39;
  const D t41 = t40 + 0.1111111111111111;
  const D t42 = t41 - t40;
  const D t43 = ((t40 - (t41 - t42)) + (0.1111111111111111 - t42)) + ((t39 - (t40 - t38)) +
      6.1679056923619804e-18);
  const D t44 = t41 + t43;
  const D t45 = t44 * t28;
  const D t46 = ProductError(t44, t28, t45) + ((t44 * t31) + ((t43 - (t44 - t41)) * t28));
  const D t47 = t45 + t46;
  const D t48 = t47 + 0.14285714285714285;
  const D t49 = t48 - t47;
  const D t50 = ((t47 - (t48 - t49)) + (0.14285714285714285 - t49)) + ((t46 - (t47 - t45)) +
      7.93016446160826e-18);
  const D t51 = t48 + t50;
  const D t52 = t51 * t28;
  const D t53 = ProductError(t51, t28, t52) + ((t51 * t31) + ((t50 - (t51 - t48)) * t28));
  const D t54 = t52 + t53;
  const D t55 = t54 + 0.2;
  const D t56 = t55 - t54;
  const D t57 = ((t54 - (t55 - t56)) + (0.2 - t56)) + ((t53 - (t54 - t52)) +
      -1.1102230246251566e-17);
  const D t58 = t55 + t57;
  const D t59 = t58 * t28;
  const D t60 = ProductError(t58, t28, t59) + ((t58 * t31) + ((t57 - (t58 - t55)) * t28));
  const D t61 = t59 + t60;
  const D t62 = t61 + 0.3333333333333333;
  const D t63 = t62 - t61;
  const D t64 = ((t61 - (t62 - t63)) + (0.3333333333333333 - t63)) + ((t60 - (t61 - t59)) +
      1.850371707708594e-17);
  const D t65 = t62 + t64;
  const D t66 = t65 * t28;
  const D t67 = ProductError(t65, t28, t66) + ((t65 * t31) + ((t64 - (t65 - t62)) * t28));
  const D t68 = t66 + t67;
  const D t69 = t68 * t24;
  const D t70 = ProductError(t68, t24, t69) + ((t68 * t26) + ((t67 - (t68 - t66)) * t24));
  const D t71 = t69 + t70;
  const D t72 = t71 + t24;
  const D t73 = t72 - t71;
  const D t74 = ((t71 - (t72 - t73)) + (t24 - t73)) + ((t70 - (t71 - t69)) + t26);
  const D t75 = t72 + t74;
  const D t76 = t75 * 2.0;
  const D t77 = t4 + t76;
  const D t78 = t77 - t4;
  const D t79 = ((t4 - (t77 - t78)) + (t76 - t78)) + ((t3 - (t4 - t2)) + ((t74 - (t75 - t72)) *
      2.0));
  const D t80 = t77 + t79;
  const D t81 = t1 * 0.6931471803691238;
  const D t82 = t80 + t81;
  const D t83 = t82 - t80;
  const D t84 = ((t80 - (t82 - t83)) + (t81 - t83)) + (t79 - (t80 - t77));
  const D t85 = t82 + t84;
  const D t86 = t85 * a;
  const D t87 = ProductError(t85, a, t86) + ((t84 - (t85 - t82)) * a);
  const D t88 = t86 + t87;
  const D t89 = -x;
  const D t90 = t88 + t89;
  const D t91 = t90 - t88;
  const D t92 = ((t88 - (t90 - t91)) + (t89 - t91)) + (t87 - (t88 - t86));
  const D t93 = t90 + t92;
  const D t94 = a + 1.0;
  const D t95 = t94 - a;
  const D t96 = (a - (t94 - t95)) + (1.0 - t95);
  const D t97 = t94 + t96;
  const I t98 = t97 < 10.0;
  const D t99 = t98 ? t97 : Full(1.0);
  const D t100 = t99 + 10.0;
  const D t101 = t100 - t99;
  const D t102 = t96 - (t97 - t94);
  const D t103 = t98 ? t102 : Full(0.0);
  const D t104 = ((t99 - (t100 - t101)) + (10.0 - t101)) + t103;
  const D t105 = t100 + t104;
  const D t106 = t98 ? t105 : t97;
  const D t107 = t106 + -0.5;
  const D t108 = t107 - t106;
  const D t109 = t98 ? (t104 - (t105 - t100)) : t102;
  const D t110 = ((t106 - (t107 - t108)) + (-0.5 - t108)) + t109;
  const D t111 = t107 + t110;
  const I t112 = ((I)((U)((I)t106) - INT64_C(4604544271217802189))) >> 52;
  const D t113 = __builtin_convertvector(t112, D);
  const D t114 = t113 * 1.9082149292705877e-10;
  const D t115 = ProductError(t113, Full(1.9082149292705877e-10), t114) + (t113 *
      1.1612227229362532e-26);
  const D t116 = t114 + t115;
  const D t117 = (D)((I)((U)((I)(1023 - (U)t112)) << 52));
  const D t118 = (t106 * t117) - 1.0;
  const D t119 = t109 * t117;
  const D t120 = t118 + t119;
  const D t121 = t120 - t118;
  const D t122 = (t118 - (t120 - t121)) + (t119 - t121);
  const D t123 = t120 + t122;
  const D t124 = t123 + 2.0;
  const D t125 = t124 - t123;
  const D t126 = t122 - (t123 - t120);
  const D t127 = ((t123 - (t124 - t125)) + (2.0 - t125)) + t126;
  const D t128 = t124 + t127;
  const D t129 = t123 / t128;
  const D t130 = t128 * t129;
  const D t131 = ProductError(t128, t129, t130) + ((t127 - (t128 - t124)) * t129);
  const D t132 = t130 + t131;
  const D t133 = -t132;
  const D t134 = t123 + t133;
  const D t135 = t134 - t123;
  const D t136 = ((t123 - (t134 - t135)) + (t133 - t135)) + (t126 + (-(t131 - (t132 - t130))));
  const D t137 = (t134 + t136) / t128;
  const D t138 = t129 + t137;
  const D t139 = t138 * t138;
  const D t140 = t137 - (t138 - t129);
  const D t141 = ProductError(t138, t138, t139) + ((t138 * t140) + (t140 * t138));
  const D t142 = t139 + t141;
  const D t143 = Polynomial(t142, kTable16);
  const D t144 = t143 * t142;
  const D t145 = t141 - (t142 - t139);
  const D t146 = ProductError(t143, t142, t144) + (t143 * t145);
  const D t147 = t144 + t146;
  const D t148 = t147 + 0.09090909090909091;
  const D t149 = t148 - t147;
  const D t150 = ((t147 - (t148 - t149)) + (0.09090909090909091 - t149)) + ((t146 - (t147 - t144)) +
      -2.523234146875356e-18);
  const D t151 = t148 + t150;
  const D t152 = t151 * t142;
  const D t153 = ProductError(t151, t142, t152) + ((t151 * t145) + ((t150 - (t151 - t148)) * t142));
  const D t154 = t152 + t153;
  const D t155 = t154 + 0.1111111111111111;
  const D t156 = t155 - t154;
  const D t157 = ((t154 - (t155 - t156)) + (0.1111111111111111 - t156)) + ((t153 - (t154 - t152)) +
      6.1679056923619804e-18);
  const D t158 = t155 + t157;
  const D t159 = t158 * t142;
  const D t160 = ProductError(t158, t142, t159) + ((t158 * t145) + ((t157 - (t158 - t155)) * t142));
  const D t161 = t159 + t160;
  const D t162 = t161 + 0.14285714285714285;
  const D t163 = t162 - t161;
  const D t164 = ((t161 - (t162 - t163)) + (0.14285714285714285 - t163)) + ((t160 - (t161 - t159)) +
      7.93016446160826e-18);
  const D t165 = t162 + t164;
  const D t166 = t165 * t142;
  const D t167 = ProductError(t165, t142, t166) + ((t165 * t145) + ((t164 - (t165 - t162)) * t142));
  const D t168 = t166 + t167;
  const D t169 = t168 + 0.2;
  const D t170 = t169 - t168;
  const D t171 = ((t168 - (t169 - t170)) + (0.2 - t170)) + ((t167 - (t168 - t166)) +
      -1.1102230246251566e-17);
  const D t172 = t169 + t171;
  const D t173 = t172 * t142;
  const D t174 = ProductError(t172, t142, t173) + ((t172 * t145) + ((t171 - (t172 - t169)) * t142));
  const D t175 = t173 + t174;
  const D t176 = t175 + 0.3333333333333333;
  const D t177 = t176 - t175;
  const D t178 = ((t175 - (t176 - t177)) + (0.3333333333333333 - t177)) + ((t174 - (t175 - t173)) +
      1.850371707708594e-17);
  const D t179 = t176 + t178;
  const D t180 = t179 * t142;
  const D t181 = ProductError(t179, t142, t180) + ((t179 * t145) + ((t178 - (t179 - t176)) * t142));
  const D t182 = t180 + t181;
  const D t183 = t182 * t138;
  const D t184 = ProductError(t182, t138, t183) + ((t182 * t140) + ((t181 - (t182 - t180)) * t138));
  const D t185 = t183 + t184;
  const D t186 = t185 + t138;
  const D t187 = t186 - t185;
  const D t188 = ((t185 - (t186 - t187)) + (t138 - t187)) + ((t184 - (t185 - t183)) + t140);
  const D t189 = t186 + t188;
  const D t190 = t189 * 2.0;
  const D t191 = t116 + t190;
  const D t192 = t191 - t116;
  const D t193 = ((t116 - (t191 - t192)) + (t190 - t192)) + ((t115 - (t116 - t114)) + ((t188 - (t189
      - t186)) * 2.0));
  const D t194 = t191 + t193;
  const D t195 = t113 * 0.6931471803691238;
  const D t196 = t194 + t195;
  const D t197 = t196 - t194;
  const D t198 = ((t194 - (t196 - t197)) + (t195 - t197)) + (t193 - (t194 - t191));
  const D t199 = t196 + t198;
  const D t200 = t111 * t199;
  const D t201 = (t111 * (t198 - (t199 - t196))) + ((t110 - (t111 - t107)) * t199);
  const D t202 = ProductError(t111, t199, t200) + t201;
  const D t203 = t200 + t202;
  const D t204 = -t106;
  const D t205 = t203 + t204;
  const D t206 = t205 - t203;
  const D t207 = ((t203 - (t205 - t206)) + (t204 - t206)) + ((t202 - (t203 - t200)) + (-t109));
  const D t208 = t205 + t207;
  const D t209 = t208 + 0.9189385332046728;
  const D t210 = t209 - t208;
  const D t211 = ((t208 - (t209 - t210)) + (0.9189385332046728 - t210)) + ((t207 - (t208 - t205)) +
      -3.8782941580672414e-17);
  const D t212 = t209 + t211;
  const D t213 = Polynomial(1.0 / (t106 * t106), kTable15) / t106;
  const D t214 = t212 + t213;
  const D t215 = t214 - t212;
  const D t216 = ((t212 - (t214 - t215)) + (t213 - t215)) + (t211 - (t212 - t209));
  const D t217 = t214 + t216;
  const D t218 = -t217;
  const D t219 = t93 + t218;
  const D t220 = t219 - t93;
  const D t221 = ((t93 - (t219 - t220)) + (t218 - t220)) + ((t92 - (t93 - t90)) + (-(t216 - (t217 -
      t214))));
  const D t222 = t219 + t221;
  const D t223 = WideExp(t222);
  const D t224 = (t223 < INFINITY) ? (t223 * (t221 - (t222 - t219))) : Full(0.0);
  const D t225 = t99 + 9.0;
  const D t226 = t225 - t99;
  const D t227 = ((t99 - (t225 - t226)) + (9.0 - t226)) + t103;
  const D t228 = t225 + t227;
  const D t229 = t99 * t228;
  const D t230 = ProductError(t99, t228, t229) + ((t99 * (t227 - (t228 - t225))) + (t103 * t228));
  const D t231 = t229 + t230;
  const D t232 = t231 + 8.0;
  const D t233 = t232 - t231;
  const D t234 = t230 - (t231 - t229);
  const D t235 = ((t231 - (t232 - t233)) + (8.0 - t233)) + t234;
  const D t236 = t232 + t235;
  const D t237 = t231 * t236;
  const D t238 = ProductError(t231, t236, t237) + ((t231 * (t235 - (t236 - t232))) + (t234 * t236));
  const D t239 = t237 + t238;
  const D t240 = t231 + 14.0;
  const D t241 = t240 - t231;
  const D t242 = ((t231 - (t240 - t241)) + (14.0 - t241)) + t234;
  const D t243 = t240 + t242;
  const D t244 = t239 * t243;
  const D t245 = (t239 * (t242 - (t243 - t240))) + ((t238 - (t239 - t237)) * t243);
  const D t246 = ProductError(t239, t243, t244) + t245;
  const D t247 = t244 + t246;
  const D t248 = t231 + 18.0;
  const D t249 = t248 - t231;
  const D t250 = ((t231 - (t248 - t249)) + (18.0 - t249)) + t234;
  const D t251 = t248 + t250;
  const D t252 = t247 * t251;
  const D t253 = (t247 * (t250 - (t251 - t248))) + ((t246 - (t247 - t244)) * t251);
  const D t254 = ProductError(t247, t251, t252) + t253;
  const D t255 = t252 + t254;
  const D t256 = t231 + 20.0;
  const D t257 = t256 - t231;
  const D t258 = ((t231 - (t256 - t257)) + (20.0 - t257)) + t234;
  const D t259 = t256 + t258;
  const D t260 = t255 * t259;
  const D t261 = (t255 * (t258 - (t259 - t256))) + ((t254 - (t255 - t252)) * t259);
  const D t262 = ProductError(t255, t259, t260) + t261;
  const D t263 = t260 + t262;
  const D t264 = (t98 ? t263 : Full(1.0)) + (t98 ? (t262 - (t263 - t260)) : Full(0.0));
  return (t223 + t224) * t264;
}

WEFT_HERE_CALLED D TemmeTail(D a, D x) {
  const D t0 = -a;
  const D t1 = x + t0;
  const D t2 = t1 - x;
  const D t3 = (x - (t1 - t2)) + (t0 - t2);
  const D t4 = t1 + t3;
  const D t5 = x / a;
  const D t6 = a * t5;
  const D t7 = ProductError(a, t5, t6);
  const D t8 = t6 + t7;
  const D t9 = -t8;
  const D t10 = x + t9;
  const D t11 = t10 - x;
  const D t12 = t10 + (((x - (t10 - t11)) + (t9 - t11)) + (-(t7 - (t8 - t6))));
  const D t13 = t12 / a;
  const D t14 = t5 + t13;
  const I t15 = ((I)((U)((I)t14) - INT64_C(4604544271217802189))) >> 52;
  const D t16 = __builtin_convertvector(t15, D);
  const D t17 = t16 * 1.9082149292705877e-10;
  const D t18 = ProductError(t16, Full(1.9082149292705877e-10), t17) + (t16 *
      1.1612227229362532e-26);
  const D t19 = t17 + t18;
  const D t20 = (D)((I)((U)((I)(1023 - (U)t15)) << 52));
  const D t21 = (t14 * t20) - 1.0;
  const D t22 = (t13 - (t14 - t5)) * t20;
  const D t23 = t21 + t22;
  const D t24 = t23 - t21;
  const D t25 = (t21 - (t23 - t24)) + (t22 - t24);
  const D t26 = t23 + t25;
  const D t27 = t26 + 2.0;
  const D t28 = t27 - t26;
  const D t29 = t25 - (t26 - t23);
  const D t30 = ((t26 - (t27 - t28)) + (2.0 - t28)) + t29;
  const D t31 = t27 + t30;
  const D t32 = t26 / t31;
  const D t33 = t31 * t32;
  const D t34 = ProductError(t31, t32, t33) + ((t30 - (t31 - t27)) * t32);
  const D t35 = t33 + t34;
  const D t36 = -t35;
  const D t37 = t26 + t36;
  const D t38 = t37 - t26;
  const D t39 = ((t26 - (t37 - t38)) + (t36 - t38)) + (t29 + (-(t34 - (t35 - t33))));
  const D t40 = (t37 + t39) / t31;
  const D t41 = t32 + t40;
  const D t42 = t41 * t41;
  const D t43 = t40 - (t41 - t32);
  const D t44 = ProductError(t41, t41, t42) + ((t41 * t43) + (t43 * t41));
  const D t45 = t42 + t44;
  const D t46 = Polynomial(t45, kTable16);
  const D t47 = t46 * t45;
  const D t48 = t44 - (t45 - t42);
  const D t49 = ProductError(t46, t45, t47) + (t46 * t48);
  const D t50 = t47 + t49;
  const D t51 = t50 + 0.09090909090909091;
  const D t52 = t51 - t50;
  const D t53 = ((t50 - (t51 - t52)) + (0.09090909090909091 - t52)) + ((t49 - (t50 - t47)) +
      -2.523234146875356e-18);
  const D t54 = t51 + t53;
  const D t55 = t54 * t45;
  const D t56 = ProductError(t54, t45, t55) + ((t54 * t48) + ((t53 - (t54 - t51)) * t45));
  const D t57 = t55 + t56;
  const D t58 = t57 + 0.1111111111111111;
  const D t59 = t58 - t57;
  const D t60 = ((t57 - (t58 - t59)) + (0.1111111111111111 - t59)) + ((t56 - (t57 - t55)) +
      6.1679056923619804e-18);
  const D t61 = t58 + t60;
  const D t62 = t61 * t45;
  const D t63 = ProductError(t61, t45, t62) + ((t61 * t48) + ((t60 - (t61 - t58)) * t45));
  const D t64 = t62 + t63;
  const D t65 = t64 + 0.14285714285714285;
  const D t66 = t65 - t64;
  const D t67 = ((t64 - (t65 - t66)) + (0.14285714285714285 - t66)) + ((t63 - (t64 - t62)) +
      7.93016446160826e-18);
  const D t68 = t65 + t67;
  const D t69 = t68 * t45;
  const D t70 = ProductError(t68, t45, t69) + ((t68 * t48) + ((t67 - (t68 - t65)) * t45));
  const D t71 = t69 + t70;
  const D t72 = t71 + 0.2;
  const D t73 = t72 - t71;
  const D t74 = ((t71 - (t72 - t73)) + (0.2 - t73)) + ((t70 - (t71 - t69)) +
      -1.1102230246251566e-17);
  const D t75 = t72 + t74;
  const D t76 = t75 * t45;
  const D t77 = ProductError(t75, t45, t76) + ((t75 * t48) + ((t74 - (t75 - t72)) * t45));
  const D t78 = t76 + t77;
  const D t79 = t78 + 0.3333333333333333;
  const D t80 = t79 - t78;
  const D t81 = ((t78 - (t79 - t80)) + (0.3333333333333333 - t80)) + ((t77 - (t78 - t76)) +
      1.850371707708594e-17);
  const D t82 = t79 + t81;
  const D t83 = t82 * t45;
  const D t84 = ProductError(t82, t45, t83) + ((t82 * t48) + ((t81 - (t82 - t79)) * t45));
  const D t85 = t83 + t84;
  const D t86 = t85 * t41;
  const D t87 = ProductError(t85, t41, t86) + ((t85 * t43) + ((t84 - (t85 - t83)) * t41));
  const D t88 = t86 + t87;
  const D t89 = t88 + t41;
  const D t90 = t89 - t88;
  const D t91 = ((t88 - (t89 - t90)) + (t41 - t90)) + ((t87 - (t88 - t86)) + t43);
  const D t92 = t89 + t91;
  const D t93 = t92 * 2.0;
  const D t94 = t19 + t93;
  const D t95 = t94 - t19;
  const D t96 = ((t19 - (t94 - t95)) + (t93 - t95)) + ((t18 - (t19 - t17)) + ((t91 - (t92 - t89)) *
      2.0));
  const D t97 = t94 + t96;
  const D t98 = t16 * 0.6931471803691238;
  const D t99 = t97 + t98;
  const D t100 = t99 - t97;
  const D t101 = ((t97 - (t99 - t100)) + (t98 - t100)) + (t96 - (t97 - t94));
  const D t102 = t99 + t101;
  const D t103 = t102 * a;
  const D t104 = ProductError(t102, a, t103) + ((t101 - (t102 - t99)) * a);
  const D t105 = t103 + t104;
  const D t106 = -t105;
  const D t107 = t4 + t106;
  const D t108 = t107 - t4;
  const D t109 = ((t4 - (t107 - t108)) + (t106 - t108)) + ((t3 - (t4 - t1)) + (-(t104 - (t105 -
      t103))));
  const D t110 = t107 + t109;
  const D t111 = WideExp(-t110);
  const D t112 = t109 - (t110 - t107);
  const I t113 = x >= a;
  const D t114 = Largest(t110 + t112, Full(0.0));
  const D t115 = FullRoot(t114);
  const D t116 = (t115 == INFINITY) ? Full(1.0) : ((t115 - 2.0) / (t115 + 2.0));
  const D t117 = Polynomial((Least(Largest(t116, Full(-1.0)), Full(1.0)) - 0.0) * 1.0, kTable25);
  const D t118 = (t117 / ((t115 * 2.0) + 1.0)) * 0.5;
  const D t119 = 1.0 / a;
  const D t120 = FullRoot((t114 * 2.0) * t119);
  const D t121 = t113 ? t120 : (-t120);
  const D t122 = (((0.0 * t119) + Polynomial(t121, kTable17)) * t119) + Polynomial(t121, kTable18);
  const D t123 = (((t122 * t119) + Polynomial(t121, kTable19)) * t119) + Polynomial(t121, kTable20);
  const D t124 = (((t123 * t119) + Polynomial(t121, kTable21)) * t119) + Polynomial(t121, kTable22);
  const D t125 = (((t124 * t119) + Polynomial(t121, kTable23)) * t119) + Polynomial(t121, kTable24);
  const D t126 = t125 / FullRoot(a * 6.283185307179586);
  const D t127 = (t111 + ((t111 < INFINITY) ? (t111 * (-t112)) : Full(0.0))) * (t113 ? (t118 + t126)
      : (t118 - t126));
  return t127;
}

WEFT_HERE_CALLED D SmallUpper(D a, D x) {
  const I t0 = ((I)((U)((I)x) - INT64_C(4604544271217802189))) >> 52;
  const D t1 = __builtin_convertvector(t0, D);
  const D t2 = t1 * 1.9082149292705877e-10;
  const D t3 = ProductError(t1, Full(1.9082149292705877e-10), t2) + (t1 * 1.1612227229362532e-26);
  const D t4 = t2 + t3;
  const D t5 = (x * ((D)((I)((U)((I)(1023 - (U)t0)) << 52)))) - 1.0;
  const D t6 = t5 + 0.0;
  const D t7 = t6 - t5;
  const D t8 = (t5 - (t6 - t7)) + (0.0 - t7);
  const D t9 = t6 + t8;
  const D t10 = t9 + 2.0;
  const D t11 = t10 - t9;
  const D t12 = t8 - (t9 - t6);
  const D t13 = ((t9 - (t10 - t11)) + (2.0 - t11)) + t12;
  const D t14 = t10 + t13;
  const D t15 = t9 / t14;
  const D t16 = t14 * t15;
  const D t17 = ProductError(t14, t15, t16) + ((t13 - (t14 - t10)) * t15);
  const D t18 = t16 + t17;
  const D t19 = -t18;
  const D t20 = t9 + t19;
  const D t21 = t20 - t9;
  const D t22 = ((t9 - (t20 - t21)) + (t19 - t21)) + (t12 + (-(t17 - (t18 - t16))));
  const D t23 = (t20 + t22) / t14;
  const D t24 = t15 + t23;
  const D t25 = t24 * t24;
  const D t26 = t23 - (t24 - t15);
  const D t27 = ProductError(t24, t24, t25) + ((t24 * t26) + (t26 * t24));
  const D t28 = t25 + t27;
  const D t29 = Polynomial(t28, kTable16);
  const D t30 = t29 * t28;
  const D t31 = t27 - (t28 - t25);
  const D t32 = ProductError(t29, t28, t30) + (t29 * t31);
  const D t33 = t30 + t32;
  const D t34 = t33 + 0.09090909090909091;
  const D t35 = t34 - t33;
  const D t36 = ((t33 - (t34 - t35)) + (0.09090909090909091 - t35)) + ((t32 - (t33 - t30)) +
      -2.523234146875356e-18);
  const D t37 = t34 + t36;
  const D t38 = t37 * t28;
  const D t39 = ProductError(t37, t28, t38) + ((t37 * t31) + ((t36 - (t37 - t34)) * t28));
  const D t40 = t38 + t39;
  const D t41 = t40 + 0.1111111111111111;
  const D t42 = t41 - t40;
  const D t43 = ((t40 - (t41 - t42)) + (0.1111111111111111 - t42)) + ((t39 - (t40 - t38)) +
      6.1679056923619804e-18);
  const D t44 = t41 + t43;
  const D t45 = t44 * t28;
  const D t46 = ProductError(t44, t28, t45) + ((t44 * t31) + ((t43 - (t44 - t41)) * t28));
  const D t47 = t45 + t46;
  const D t48 = t47 + 0.14285714285714285;
  const D t49 = t48 - t47;
  const D t50 = ((t47 - (t48 - t49)) + (0.14285714285714285 - t49)) + ((t46 - (t47 - t45)) +
      7.93016446160826e-18);
  const D t51 = t48 + t50;
  const D t52 = t51 * t28;
  const D t53 = ProductError(t51, t28, t52) + ((t51 * t31) + ((t50 - (t51 - t48)) * t28));
  const D t54 = t52 + t53;
  const D t55 = t54 + 0.2;
  const D t56 = t55 - t54;
  const D t57 = ((t54 - (t55 - t56)) + (0.2 - t56)) + ((t53 - (t54 - t52)) +
      -1.1102230246251566e-17);
  const D t58 = t55 + t57;
  const D t59 = t58 * t28;
  const D t60 = ProductError(t58, t28, t59) + ((t58 * t31) + ((t57 - (t58 - t55)) * t28));
  const D t61 = t59 + t60;
  const D t62 = t61 + 0.3333333333333333;
  const D t63 = t62 - t61;
  const D t64 = ((t61 - (t62 - t63)) + (0.3333333333333333 - t63)) + ((t60 - (t61 - t59)) +
      1.850371707708594e-17);
  const D t65 = t62 + t64;
  const D t66 = t65 * t28;
  const D t67 = ProductError(t65, t28, t66) + ((t65 * t31) + ((t64 - (t65 - t62)) * t28));
  const D t68 = t66 + t67;
  const D t69 = t68 * t24;
  const D t70 = ProductError(t68, t24, t69) + ((t68 * t26) + ((t67 - (t68 - t66)) * t24));
  const D t71 = t69 + t70;
  const D t72 = t71 + t24;
  const D t73 = t72 - t71;
  const D t74 = ((t71 - (t72 - t73)) + (t24 - t73)) + ((t70 - (t71 - t69)) + t26);
  const D t75 = t72 + t74;
  const D t76 = t75 * 2.0;
  const D t77 = t4 + t76;
  const D t78 = t77 - t4;
  const D t79 = ((t4 - (t77 - t78)) + (t76 - t78)) + ((t3 - (t4 - t2)) + ((t74 - (t75 - t72)) *
      2.0));
  const D t80 = t77 + t79;
  const D t81 = t1 * 0.6931471803691238;
  const D t82 = t80 + t81;
  const D t83 = t82 - t80;
  const D t84 = ((t80 - (t82 - t83)) + (t81 - t83)) + (t79 - (t80 - t77));
  const D t85 = t82 + t84;
  const D t86 = a + 1.0;
  const D t87 = Polynomial((Least(Largest(t86, Full(0.5)), Full(1.5)) - 1.0) * 2.0, kTable26);
  const D t88 = (Least(Largest(t86, Full(1.5)), Full(3.0)) - 2.25) * 1.3333333333333333;
  const D t89 = (1.0 - a) * ((a < 0.5) ? t87 : Polynomial(t88, kTable27));
  const D t90 = t85 + t89;
  const D t91 = t90 - t85;
  const D t92 = ((t85 - (t90 - t91)) + (t89 - t91)) + (t84 - (t85 - t82));
  const D t93 = t90 + t92;
  const D t94 = EachExpm1(a * (t93 + (t92 - (t93 - t90))));
  const D t95 = (1.0 * x) * -1.0;
  const D t96 = (t95 * x) * -0.5;
  const D t97 = (t96 * x) * -0.3333333333333333;
  const D t98 = ((0.0 + (t95 / (a + 1.0))) + (t96 / (a + 2.0))) + (t97 / (a + 3.0));
  const D t99 = (t97 * x) * -0.25;
  const D t100 = (t99 * x) * -0.2;
  const D t101 = (t100 * x) * -0.16666666666666666;
  const D t102 = ((t98 + (t99 / (a + 4.0))) + (t100 / (a + 5.0))) + (t101 / (a + 6.0));
  const D t103 = (t101 * x) * -0.14285714285714285;
  const D t104 = (t103 * x) * -0.125;
  const D t105 = (t104 * x) * -0.1111111111111111;
  const D t106 = ((t102 + (t103 / (a + 7.0))) + (t104 / (a + 8.0))) + (t105 / (a + 9.0));
  const D t107 = (t105 * x) * -0.1;
  const D t108 = (t107 * x) * -0.09090909090909091;
  const D t109 = (t108 * x) * -0.08333333333333333;
  const D t110 = ((t106 + (t107 / (a + 10.0))) + (t108 / (a + 11.0))) + (t109 / (a + 12.0));
  const D t111 = (t109 * x) * -0.07692307692307693;
  const D t112 = (t111 * x) * -0.07142857142857142;
  const D t113 = (t112 * x) * -0.06666666666666667;
  const D t114 = ((t110 + (t111 / (a + 13.0))) + (t112 / (a + 14.0))) + (t113 / (a + 15.0));
  const D t115 = (t113 * x) * -0.0625;
  const D t116 = (t115 * x) * -0.058823529411764705;
  const D t117 = (t116 * x) * -0.05555555555555555;
  const D t118 = ((t114 + (t115 / (a + 16.0))) + (t116 / (a + 17.0))) + (t117 / (a + 18.0));
  const D t119 = a * (t118 + (((t117 * x) * -0.05263157894736842) / (a + 19.0)));
  return (-t94) - ((t94 + 1.0) * t119);
}

WEFT_HERE_CALLED D ZetaUsual(D s, D q) {
  const D t0 = q + 1.0;
  const D t1 = t0 + 1.0;
  const D t2 = ((0.0 + WidePowerUsual(q, -s)) + WidePowerUsual(t0, -s)) + WidePowerUsual(t1, -s);
  const D t3 = t1 + 1.0;
  const D t4 = t3 + 1.0;
  const D t5 = t4 + 1.0;
  const D t6 = ((t2 + WidePowerUsual(t3, -s)) + WidePowerUsual(t4, -s)) + WidePowerUsual(t5, -s);
  const D t7 = t5 + 1.0;
  const D t8 = t7 + 1.0;
  const D t9 = t8 + 1.0;
  const D t10 = ((t6 + WidePowerUsual(t7, -s)) + WidePowerUsual(t8, -s)) + WidePowerUsual(t9, -s);
  const D t11 = t9 + 1.0;
  const D t12 = WidePowerUsual(t11, -s);
  const D t13 = 1.0 / t11;
  const D t14 = (t12 * s) * t13;
  const D t15 = (t12 * ((t11 / (s - 1.0)) + 0.5)) + (t14 * 0.08333333333333333);
  const D t16 = (t14 * ((s + 1.0) * t13)) * ((s + 2.0) * t13);
  const D t17 = (t16 * ((s + 3.0) * t13)) * ((s + 4.0) * t13);
  const D t18 = (t15 + (t16 * -0.001388888888888889)) + (t17 * 3.306878306878307e-05);
  const D t19 = (t17 * ((s + 5.0) * t13)) * ((s + 6.0) * t13);
  const D t20 = (t19 * ((s + 7.0) * t13)) * ((s + 8.0) * t13);
  const D t21 = (t18 + (t19 * -8.267195767195768e-07)) + (t20 * 2.08767569878681e-08);
  const D t22 = (t20 * ((s + 9.0) * t13)) * ((s + 10.0) * t13);
  const D t23 = (t22 * ((s + 11.0) * t13)) * ((s + 12.0) * t13);
  const D t24 = (t21 + (t22 * -5.284190138687493e-10)) + (t23 * 1.3382536530684679e-11);
  const D t25 = (t23 * ((s + 13.0) * t13)) * ((s + 14.0) * t13);
  const D t26 = (t25 * ((s + 15.0) * t13)) * ((s + 16.0) * t13);
  const D t27 = (t24 + (t25 * -3.3896802963225827e-13)) + (t26 * 8.586062056277845e-15);
  const D t28 = ((t26 * ((s + 17.0) * t13)) * ((s + 18.0) * t13)) * -2.174868698558062e-16;
  return t10 + (t27 + t28);
}

WEFT_HERE_CALLED D ZetaSingle(D s, D q) {
  const I t0 = (I)q;
  const I t1 = ((I)((U)t0 - INT64_C(4604544271217802189))) >> 52;
  const D t2 = (D)((I)((U)t0 - (U)((I)((U)t1 << 52))));
  const D t3 = (t2 - 1.0) / (t2 + 1.0);
  const D t4 = (-s) * ((t3 * Polynomial(t3 * t3, kTable4)) + Number(t1));
  const D t5 = Nearest(t4);
  const D t6 = Polynomial(t4 - t5, kTable5) * ((D)((I)((U)((I)((U)(Whole(t5)) + 1023)) << 52)));
  const D t7 = q + 1.0;
  const I t8 = (I)t7;
  const I t9 = ((I)((U)t8 - INT64_C(4604544271217802189))) >> 52;
  const D t10 = (D)((I)((U)t8 - (U)((I)((U)t9 << 52))));
  const D t11 = (t10 - 1.0) / (t10 + 1.0);
  const D t12 = (-s) * ((t11 * Polynomial(t11 * t11, kTable4)) + Number(t9));
  const D t13 = Nearest(t12);
  const D t14 = Polynomial(t12 - t13, kTable5) * ((D)((I)((U)((I)((U)(Whole(t13)) + 1023)) << 52)));
  const D t15 = t7 + 1.0;
  const I t16 = (I)t15;
  const I t17 = ((I)((U)t16 - INT64_C(4604544271217802189))) >> 52;
  const D t18 = (D)((I)((U)t16 - (U)((I)((U)t17 << 52))));
  const D t19 = (t18 - 1.0) / (t18 + 1.0);
  const D t20 = (-s) * ((t19 * Polynomial(t19 * t19, kTable4)) + Number(t17));
  const D t21 = Nearest(t20);
  const D t22 = Polynomial(t20 - t21, kTable5) * ((D)((I)((U)((I)((U)(Whole(t21)) + 1023)) << 52)));
  const D t23 = t15 + 1.0;
  const I t24 = (I)t23;
  const I t25 = ((I)((U)t24 - INT64_C(4604544271217802189))) >> 52;
  const D t26 = (D)((I)((U)t24 - (U)((I)((U)t25 << 52))));
  const D t27 = (t26 - 1.0) / (t26 + 1.0);
  const D t28 = (-s) * ((t27 * Polynomial(t27 * t27, kTable4)) + Number(t25));
  const D t29 = Nearest(t28);
  const D t30 = Polynomial(t28 - t29, kTable5) * ((D)((I)((U)((I)((U)(Whole(t29)) + 1023)) << 52)));
  const D t31 = t23 + 1.0;
  const I t32 = (I)t31;
  const I t33 = ((I)((U)t32 - INT64_C(4604544271217802189))) >> 52;
  const D t34 = (D)((I)((U)t32 - (U)((I)((U)t33 << 52))));
  const D t35 = (t34 - 1.0) / (t34 + 1.0);
  const D t36 = (-s) * ((t35 * Polynomial(t35 * t35, kTable4)) + Number(t33));
  const D t37 = Nearest(t36);
  const D t38 = Polynomial(t36 - t37, kTable5) * ((D)((I)((U)((I)((U)(Whole(t37)) + 1023)) << 52)));
  const D t39 = 1.0 / t31;
  const D t40 = (t38 * s) * t39;
  const D t41 = (t38 * ((t31 / (s - 1.0)) + 0.5)) + (t40 * 0.08333333333333333);
  const D t42 = (t40 * ((s + 1.0) * t39)) * ((s + 2.0) * t39);
  const D t43 = (t42 * ((s + 3.0) * t39)) * ((s + 4.0) * t39);
  const D t44 = (t41 + (t42 * -0.001388888888888889)) + (t43 * 3.306878306878307e-05);
  const D t45 = (t43 * ((s + 5.0) * t39)) * ((s + 6.0) * t39);
  const D t46 = ((t45 * ((s + 7.0) * t39)) * ((s + 8.0) * t39)) * 2.08767569878681e-08;
  const D t47 = ((((0.0 + t6) + t14) + t22) + t30) + ((t44 + (t45 * -8.267195767195768e-07)) + t46);
  return t47;
}

WEFT_HERE D LogUsual(D x) {
  const I t0 = (I)x;
  const I t1 = ((I)((U)t0 - INT64_C(4604544271217802189))) >> 52;
  const D t2 = Number(t1);
  const D t3 = ((D)((I)((U)t0 - (U)((I)((U)t1 << 52))))) - 1.0;
  const D t4 = (t3 * t3) * 0.5;
  const D t5 = t3 / (t3 + 2.0);
  const D t6 = t5 * t5;
  const D t7 = (t5 * (t4 + (t6 * Polynomial(t6, kTable28)))) + (t2 * 1.9082149292705877e-10);
  return (t2 * 0.6931471803691238) - ((t4 - t7) - t3);
}

WEFT_HERE D LogAny(D x) {
  const I t0 = (I)x;
  const I t1 = (t0 > 0) & (t0 < INT64_C(4503599627370496));
  const D t2 = t1 ? __builtin_convertvector(t0, D) : x;
  const I t3 = (I)t2;
  const I t4 = ((I)((U)t3 - INT64_C(4604544271217802189))) >> 52;
  const D t5 = Number(t4);
  const D t6 = ((D)((I)((U)t3 - (U)((I)((U)t4 << 52))))) - 1.0;
  const D t7 = (t6 * t6) * 0.5;
  const D t8 = t6 / (t6 + 2.0);
  const D t9 = t8 * t8;
  const D t10 = (t8 * (t7 + (t9 * Polynomial(t9, kTable28)))) + (t5 * 1.9082149292705877e-10);
  const D t11 = (t2 < INFINITY) ? ((t5 * 0.6931471803691238) - ((t7 - t10) - t6)) : t2;
  const D t12 = (t3 > 0) ? t11 : ((((I)((U)t3 << 1)) == 0) ? Full(-INFINITY) : Full(NAN));
  return t1 ? (t12 - 744.4400719213812) : t12;
}
