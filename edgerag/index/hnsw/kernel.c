/* The searcher of a segment file: walks its graph over 4-bit or 1-bit codes and rescores the best rows from
 * their full vectors. reference.py holds the same algorithms in numpy; both give the same hits, bit for bit:
 * sums of codes are integers, every float operation stands in a fixed order, and the compiler may not
 * contract them (-ffp-contract=off).
 *
 * Plain C interface, no Python header, no state but what the caller passes. The mapped file is not trusted:
 * every id read from it is compared with the row count before it is used as an index, every count with its
 * bound. Sources: Malkov and Yashunin, arXiv:1603.09320 (the walk); Gao and Long, RaBitQ, arXiv:2405.12497
 * (codes of one bit, their unbiased estimate); Wei et al., "Speedup Graph Processing by Graph Ordering",
 * SIGMOD 2016 (the order of rows). */

#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HAVE_X86 1
#include <immintrin.h>
#else
#define HAVE_X86 0
#endif
#if defined(__aarch64__)
#define HAVE_NEON 1
#include <arm_acle.h>
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#else
#define HAVE_NEON 0
#endif

/* Elsewhere the reference serves: it would take other code to give the same hits. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the file format is little-endian, and it is read as it lies there"
#endif
#if FLT_EVAL_METHOD != 0
#error "floats must be evaluated as floats"
#endif

#define EXPORT __attribute__((visibility("default")))
#define ABI_VERSION 5

/* Error codes; the row that is at fault stands in the scratch. */
enum {
  ER_OK = 0,
  ER_NO_MEMORY = -1,
  ER_BAD_LINK = -2,   /* a link list is longer than its row or leads out of the segment */
  ER_BAD_ROW = -3,    /* a full vector does not match its checksum */
  ER_READ_FAILED = -4 /* pread failed or the file is shorter than it was; errno in the scratch */
};

/* Where a walk is: at the entry point, on the upper levels, about to follow links, with links to compare. */
enum { STARTING, DESCENDING, FOLLOWING, COMPARING };

enum { WALK_BITS = 1, WALK_NIBBLES = 4 };
enum { VECTORS_F32 = 1, VECTORS_F16 = 4 };

#define LANES 16             /* partial sums of a float product, on every path */
#define TOGETHER 3           /* rows whose links are followed before the rest: the memory works on all of them */
#define BATCH 64             /* rows whose codes are compared at a time */
#define FEW 256              /* sorted in place; more by the C library, which allocates */
#define READ_GAP 4096        /* rows this near in the file are read together */
#define WINDOW_SHIFT 21      /* log2 of the windows in which residency is counted */
#define READ_SPAN (64 << 10) /* at most so many bytes at a time */
#define NO_SIMILARITY -2.0f  /* instead of NaN: below every cosine, and in an order with all numbers */

/* ------------------------------------------------------------------ what the caller passes */

/* Equal rows packed in groups of whole pages; see docs/index-format.md. */
typedef struct {
  const uint8_t *base; /* of the section in the mapping */
  uint64_t offset;     /* and in the file */
  uint64_t reciprocal; /* 2^64 / rows_per_group rounded up; 0 when it is 1 */
  uint32_t row_bytes, rows_per_group, group_bytes;
  uint32_t block_shift; /* log2 of the block bytes */
  uint64_t *hits;       /* one counter per block of the section */
} er_rows;

typedef struct {
  uint64_t row_count;
  uint32_t dimension;        /* of the vectors */
  uint32_t padded_dimension; /* of the codes: a multiple of 64 */
  uint32_t m, m0, link_bits;
  uint32_t entry_row, entry_position; /* position: in the highest level's records */
  uint32_t level_count;
  const uint64_t *level_starts; /* level_count + 1: records of level l are [l - 1] .. [l] */
  const float *signs;           /* 4 * padded_dimension, each 1 or -1 */
  er_rows levels, links, bits, nibbles, vectors;
  int64_t *absent;      /* bytes of each 2 MiB window of the file that reading there may bring in */
  int32_t file;         /* descriptor, for the full vectors */
  uint32_t vector_type; /* VECTORS_F16 or VECTORS_F32 */
  /* Instead of the descriptor, where the file has to be decrypted: puts the full vectors of the rows that stand in the
   * upper halves of `rows` behind each other into `to`; an errno, or 0. */
  int32_t (*read)(const uint64_t *rows, uint64_t count, uint8_t *to);
  int32_t path;         /* which instructions to use: one that er_path_supported agrees to */
  int32_t walk;         /* WALK_BITS or WALK_NIBBLES */
} er_segment;

/* A row of the pool as one number: the lower, the better; equal similarities by row. From the top: the
 * similarity in an order that falls, the row (below 2^31), EXPANDED once its links were followed. */
typedef uint64_t item;
#define EXPANDED 1ull

static uint32_t row_of(item it) { return (uint32_t)it >> 1; }

/* The similarity that item_of was given. */
static float similarity_in(item it) {
  uint32_t bits = ~(uint32_t)(it >> 32);
  float similarity;
  bits = bits >> 31 ? bits & 0x7FFFFFFFu : ~bits;
  memcpy(&similarity, &bits, 4);
  return similarity;
}

static item item_of(float similarity, uint32_t row) {
  uint32_t bits;
  similarity += 0.0f; /* no negative zero */
  memcpy(&bits, &similarity, 4);
  bits = bits >> 31 ? ~bits : bits | 0x80000000u; /* rises with the similarity */
  return (uint64_t)~bits << 32 | (uint64_t)row << 1;
}

/* Everything a search needs beside the segment; re-used by later searches of the same thread. */
typedef struct {
  uint64_t bad_row;
  int32_t bad_level, error_number;
  /* query */
  float *vector, *rotated;  /* padded to LANES, padded_dimension */
  int8_t *codes, *permuted; /* padded_dimension each */
  float scale;
  int32_t code_sum;
  uint32_t dimension_capacity;
  /* walk */
  item *pool;
  uint64_t pool_capacity, pool_size, live, cursor, ef;
  const uint8_t *excluded;
  int32_t exact; /* rows are compared by their full vectors while walking, not by their codes */
  /* how far the walk is */
  int32_t phase;
  uint32_t level, next_link, row, linked, followed;
  int32_t has_record, has_linked; /* read already: a pause does not ask for their windows again */
  uint64_t position, best;
  float similarity;
  /* bytes that may become resident before the caller makes room; negative: any number */
  int64_t room;
  uint64_t *visited, visited_words; /* bitset */
  uint32_t *touched;                /* the rows visited, in the order of the walk */
  uint64_t touched_count, touched_capacity, pending; /* pending: the first that was not compared */
  /* rescoring */
  uint64_t *order; /* (row in the upper half, place in the lower) */
  uint64_t order_capacity;
  uint8_t *buffer;
  uint64_t buffer_bytes;
  uint64_t compared; /* rows compared with the query, by codes or by full vectors, since the search began */
} er_scratch;

/* ------------------------------------------------------------------ distances, one set per instruction set */

typedef void er_sums(const uint8_t *const *rows, uint32_t count, const int8_t *codes, uint32_t size, int32_t *sums);

/* The sums of many rows from the function for one, which is compiled into it. */
#define MANY(name, attributes)                                                                                      \
  attributes static void name##_many(const uint8_t *const *rows, uint32_t count, const int8_t *codes, uint32_t size, \
                                     int32_t *sums) {                                                                \
    for (uint32_t i = 0; i < count; i++) sums[i] = name(rows[i], codes, size);                                       \
  }

typedef struct {
  const char *name;
  int (*supported)(void);
  /* for each row the sum of the query's codes where the bit is set; size: codes, a multiple of 64 */
  er_sums *bits;
  /* for each row the sum of level times query code; permuted: see prepare_query */
  er_sums *nibbles;
  /* LANES partial sums; size a multiple of LANES */
  void (*half)(const uint8_t *row, const float *query, uint32_t size, float *sums);
  void (*single)(const uint8_t *row, const float *query, uint32_t size, float *sums);
  uint32_t (*crc)(uint32_t crc, const uint8_t *data, uint64_t size);
  /* Walsh-Hadamard transform in place, not scaled; size a power of two, at least 32 */
  void (*hadamard)(float *values, uint32_t size);
} er_path;

static int always(void) { return 1; }

static float half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = (half >> 10) & 31, fraction = half & 1023, bits;
  if (exponent == 31) {
    bits = sign | 0x7F800000u | fraction << 13;
  } else if (exponent) {
    bits = sign | (exponent + 112) << 23 | fraction << 13;
  } else { /* subnormal: exact as a product */
    float value = (float)fraction * 0x1p-24f;
    memcpy(&bits, &value, 4);
    bits |= sign;
  }
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

static int32_t bits_scalar(const uint8_t *row, const int8_t *codes, uint32_t size) {
  int32_t sum = 0;
  for (uint32_t i = 0; i < size; i += 8)
    for (uint32_t j = 0, byte = row[i / 8]; j < 8; j++) sum += codes[i + j] & -(int32_t)(byte >> j & 1);
  return sum;
}
MANY(bits_scalar, )

static int32_t nibbles_scalar(const uint8_t *row, const int8_t *permuted, uint32_t size) {
  int32_t sum = 0;
  for (uint32_t i = 0; i < size / 2; i++)
    sum += (row[i] & 15) * permuted[i] + (row[i] >> 4) * permuted[size / 2 + i];
  return sum;
}
MANY(nibbles_scalar, )

static void half_scalar(const uint8_t *row, const float *query, uint32_t size, float *sums) {
  for (uint32_t lane = 0; lane < LANES; lane++) sums[lane] = 0;
  for (uint32_t i = 0; i < size; i += LANES)
    for (uint32_t lane = 0; lane < LANES; lane++) {
      uint16_t value;
      memcpy(&value, row + 2 * (i + lane), 2);
      sums[lane] += half_to_float(value) * query[i + lane];
    }
}

static void single_scalar(const uint8_t *row, const float *query, uint32_t size, float *sums) {
  for (uint32_t lane = 0; lane < LANES; lane++) sums[lane] = 0;
  for (uint32_t i = 0; i < size; i += LANES)
    for (uint32_t lane = 0; lane < LANES; lane++) {
      float value;
      memcpy(&value, row + 4 * (i + lane), 4);
      sums[lane] += value * query[i + lane];
    }
}

static void hadamard_from(float *values, uint32_t size, uint32_t step) {
  for (; step < size; step *= 2)
    for (uint32_t start = 0; start < size; start += 2 * step)
      for (uint32_t i = start; i < start + step; i++) {
        float a = values[i], b = values[i + step];
        values[i] = a + b;
        values[i + step] = a - b;
      }
}

static void hadamard_scalar(float *values, uint32_t size) { hadamard_from(values, size, 1); }

/* CRC-32 of zlib (reflected polynomial EDB88320), four bits at a time: small, for machines without better. */
static uint32_t crc_scalar(uint32_t crc, const uint8_t *data, uint64_t size) {
  static const uint32_t table[16] = {0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4,
                                     0x4DB26158, 0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                     0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
  crc = ~crc;
  for (uint64_t i = 0; i < size; i++) {
    crc ^= data[i];
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
}

#if HAVE_X86

/* Folding by carry-less multiplication (Gopal et al., "Fast CRC Computation for Generic Polynomials Using
 * PCLMULQDQ Instruction", Intel 2009); the constants are powers of x modulo the polynomial, reflected. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t crc_clmul(uint32_t crc, const uint8_t *data, uint64_t size) {
  if (size < 64) return crc_scalar(crc, data, size);
  const __m128i by_64 = _mm_set_epi64x(0x01C6E41596, 0x0154442BD4), by_16 = _mm_set_epi64x(0x00CCAA009E, 0x01751997D0);
  __m128i a = _mm_loadu_si128((const __m128i *)data), b = _mm_loadu_si128((const __m128i *)(data + 16));
  __m128i c = _mm_loadu_si128((const __m128i *)(data + 32)), d = _mm_loadu_si128((const __m128i *)(data + 48));
  a = _mm_xor_si128(a, _mm_cvtsi32_si128((int32_t)~crc));
  data += 64, size -= 64;
#define FOLD(x, k, next) \
  _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)), next)
  for (; size >= 64; data += 64, size -= 64) {
    a = FOLD(a, by_64, _mm_loadu_si128((const __m128i *)data));
    b = FOLD(b, by_64, _mm_loadu_si128((const __m128i *)(data + 16)));
    c = FOLD(c, by_64, _mm_loadu_si128((const __m128i *)(data + 32)));
    d = FOLD(d, by_64, _mm_loadu_si128((const __m128i *)(data + 48)));
  }
  a = FOLD(a, by_16, b);
  a = FOLD(a, by_16, c);
  a = FOLD(a, by_16, d);
  for (; size >= 16; data += 16, size -= 16) a = FOLD(a, by_16, _mm_loadu_si128((const __m128i *)data));
#undef FOLD
  /* 128 bits to 64, to 32, by Barrett's reduction. */
  const __m128i low = _mm_setr_epi32(-1, 0, -1, 0), by_8 = _mm_set_epi64x(0, 0x0163CD6124);
  const __m128i polynomial = _mm_set_epi64x(0x01F7011641, 0x01DB710641);
  b = _mm_clmulepi64_si128(a, by_16, 0x10);
  a = _mm_xor_si128(_mm_srli_si128(a, 8), b);
  b = _mm_srli_si128(a, 4);
  a = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(a, low), by_8, 0x00), b);
  b = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(a, low), polynomial, 0x10), low);
  a = _mm_xor_si128(a, _mm_clmulepi64_si128(b, polynomial, 0x00));
  return crc_scalar(~(uint32_t)_mm_extract_epi32(a, 1), data, size);
}

#define AVX2 __attribute__((target("avx2,f16c,pclmul,sse4.1")))
static int avx2_supported(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("pclmul");
}

AVX2 static int32_t sum_avx2(__m256i sums) {
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xB1));
  return _mm_cvtsi128_si32(half);
}

AVX2 static int32_t bits_avx2(const uint8_t *row, const int8_t *codes, uint32_t size) {
  const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i single_bits = _mm256_set1_epi64x((int64_t)0x8040201008040201);
  const __m256i ones8 = _mm256_set1_epi8(1), ones16 = _mm256_set1_epi16(1);
  __m256i sums = _mm256_setzero_si256();
  for (uint32_t i = 0; i < size; i += 32) {
    int32_t word;
    memcpy(&word, row + i / 8, 4);
    __m256i set = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word), spread), single_bits);
    set = _mm256_cmpeq_epi8(set, single_bits);
    __m256i chosen = _mm256_and_si256(set, _mm256_loadu_si256((const __m256i *)(codes + i)));
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_maddubs_epi16(ones8, chosen), ones16));
  }
  return sum_avx2(sums);
}
MANY(bits_avx2, AVX2)

AVX2 static int32_t nibbles_avx2(const uint8_t *row, const int8_t *permuted, uint32_t size) {
  const __m256i low = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
  __m256i sums = _mm256_setzero_si256();
  for (uint32_t i = 0; i < size / 2; i += 32) {
    __m256i two = _mm256_loadu_si256((const __m256i *)(row + i));
    __m256i first = _mm256_maddubs_epi16(_mm256_and_si256(two, low),
                                         _mm256_loadu_si256((const __m256i *)(permuted + i)));
    __m256i second = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(two, 4), low),
                                          _mm256_loadu_si256((const __m256i *)(permuted + size / 2 + i)));
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_add_epi16(first, second), ones));
  }
  return sum_avx2(sums);
}
MANY(nibbles_avx2, AVX2)

AVX2 static void half_avx2(const uint8_t *row, const float *query, uint32_t size, float *sums) {
  __m256 a = _mm256_setzero_ps(), b = a;
  for (uint32_t i = 0; i < size; i += LANES) {
    __m256 x = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(row + 2 * i)));
    __m256 y = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(row + 2 * i + 16)));
    a = _mm256_add_ps(a, _mm256_mul_ps(x, _mm256_loadu_ps(query + i)));
    b = _mm256_add_ps(b, _mm256_mul_ps(y, _mm256_loadu_ps(query + i + 8)));
  }
  _mm256_storeu_ps(sums, a);
  _mm256_storeu_ps(sums + 8, b);
}

AVX2 static void single_avx2(const uint8_t *row, const float *query, uint32_t size, float *sums) {
  __m256 a = _mm256_setzero_ps(), b = a;
  for (uint32_t i = 0; i < size; i += LANES) {
    a = _mm256_add_ps(a, _mm256_mul_ps(_mm256_loadu_ps((const float *)(row + 4 * i)), _mm256_loadu_ps(query + i)));
    b = _mm256_add_ps(b, _mm256_mul_ps(_mm256_loadu_ps((const float *)(row + 4 * i + 32)),
                                       _mm256_loadu_ps(query + i + 8)));
  }
  _mm256_storeu_ps(sums, a);
  _mm256_storeu_ps(sums + 8, b);
}

/* The same sums and differences as hadamard_from, whose steps below the width of a register are done inside it. */
AVX2 static void hadamard_avx2(float *values, uint32_t size) {
  for (uint32_t i = 0; i < size; i += 8) {
    __m256 v = _mm256_loadu_ps(values + i), t;
    t = _mm256_permute_ps(v, 0xB1);
    v = _mm256_blend_ps(_mm256_add_ps(v, t), _mm256_sub_ps(t, v), 0xAA);
    t = _mm256_permute_ps(v, 0x4E);
    v = _mm256_blend_ps(_mm256_add_ps(v, t), _mm256_sub_ps(t, v), 0xCC);
    t = _mm256_permute2f128_ps(v, v, 1);
    v = _mm256_blend_ps(_mm256_add_ps(v, t), _mm256_sub_ps(t, v), 0xF0);
    _mm256_storeu_ps(values + i, v);
  }
  for (uint32_t step = 8; step < size; step *= 2)
    for (uint32_t start = 0; start < size; start += 2 * step)
      for (uint32_t i = start; i < start + step; i += 8) {
        __m256 a = _mm256_loadu_ps(values + i), b = _mm256_loadu_ps(values + i + step);
        _mm256_storeu_ps(values + i, _mm256_add_ps(a, b));
        _mm256_storeu_ps(values + i + step, _mm256_sub_ps(a, b));
      }
}

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx2,f16c")))
static int avx512_supported(void) {
  return avx2_supported() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

AVX512 static __m512i dot_avx512(__m512i sums, __m512i levels, __m512i codes) {
  __m512i pairs = _mm512_maddubs_epi16(levels, codes); /* at most 2 * 15 * 128: no saturation */
  return _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

AVX512 static int32_t bits_avx512(const uint8_t *row, const int8_t *codes, uint32_t size) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums = _mm512_setzero_si512();
  for (uint32_t i = 0; i < size; i += 64) {
    uint64_t mask;
    memcpy(&mask, row + i / 8, 8);
    sums = dot_avx512(sums, ones, _mm512_maskz_loadu_epi8(mask, codes + i));
  }
  return _mm512_reduce_add_epi32(sums);
}
MANY(bits_avx512, AVX512)

AVX512 static int32_t nibbles_avx512(const uint8_t *row, const int8_t *permuted, uint32_t size) {
  const __m512i low = _mm512_set1_epi8(15);
  const int8_t *second = permuted + size / 2;
  __m512i sums = _mm512_setzero_si512();
  for (uint32_t i = 0; i < size / 2; i += 64) {
    __mmask64 mask = size / 2 - i < 64 ? 0xFFFFFFFFu : ~(__mmask64)0;
    __m512i two = _mm512_maskz_loadu_epi8(mask, row + i);
    sums = dot_avx512(sums, _mm512_and_si512(two, low), _mm512_maskz_loadu_epi8(mask, permuted + i));
    sums = dot_avx512(sums, _mm512_and_si512(_mm512_srli_epi16(two, 4), low), _mm512_maskz_loadu_epi8(mask, second + i));
  }
  return _mm512_reduce_add_epi32(sums);
}
MANY(nibbles_avx512, AVX512)

AVX512 static void half_avx512(const uint8_t *row, const float *query, uint32_t size, float *sums) {
  __m512 a = _mm512_setzero_ps();
  for (uint32_t i = 0; i < size; i += LANES) {
    __m512 x = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(row + 2 * i)));
    a = _mm512_add_ps(a, _mm512_mul_ps(x, _mm512_loadu_ps(query + i)));
  }
  _mm512_storeu_ps(sums, a);
}

AVX512 static void single_avx512(const uint8_t *row, const float *query, uint32_t size, float *sums) {
  __m512 a = _mm512_setzero_ps();
  for (uint32_t i = 0; i < size; i += LANES)
    a = _mm512_add_ps(a, _mm512_mul_ps(_mm512_loadu_ps(row + 4 * i), _mm512_loadu_ps(query + i)));
  _mm512_storeu_ps(sums, a);
}

AVX512 static void hadamard_avx512(float *values, uint32_t size) {
  for (uint32_t i = 0; i < size; i += 16) {
    __m512 v = _mm512_loadu_ps(values + i), t;
    t = _mm512_permute_ps(v, 0xB1);
    v = _mm512_mask_sub_ps(_mm512_add_ps(v, t), 0xAAAA, t, v);
    t = _mm512_permute_ps(v, 0x4E);
    v = _mm512_mask_sub_ps(_mm512_add_ps(v, t), 0xCCCC, t, v);
    t = _mm512_shuffle_f32x4(v, v, 0xB1);
    v = _mm512_mask_sub_ps(_mm512_add_ps(v, t), 0xF0F0, t, v);
    t = _mm512_shuffle_f32x4(v, v, 0x4E);
    v = _mm512_mask_sub_ps(_mm512_add_ps(v, t), 0xFF00, t, v);
    _mm512_storeu_ps(values + i, v);
  }
  for (uint32_t step = 16; step < size; step *= 2)
    for (uint32_t start = 0; start < size; start += 2 * step)
      for (uint32_t i = start; i < start + step; i += 16) {
        __m512 a = _mm512_loadu_ps(values + i), b = _mm512_loadu_ps(values + i + step);
        _mm512_storeu_ps(values + i, _mm512_add_ps(a, b));
        _mm512_storeu_ps(values + i + step, _mm512_sub_ps(a, b));
      }
}

#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,avx2,f16c")))
static int vnni_supported(void) { return avx512_supported() && __builtin_cpu_supports("avx512vnni"); }

VNNI static int32_t bits_vnni(const uint8_t *row, const int8_t *codes, uint32_t size) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i a = _mm512_setzero_si512(), b = a;
  uint32_t i = 0;
  for (; i + 128 <= size; i += 128) {
    uint64_t masks[2];
    memcpy(masks, row + i / 8, 16);
    a = _mm512_dpbusd_epi32(a, ones, _mm512_maskz_loadu_epi8(masks[0], codes + i));
    b = _mm512_dpbusd_epi32(b, ones, _mm512_maskz_loadu_epi8(masks[1], codes + i + 64));
  }
  if (i < size) {
    uint64_t mask;
    memcpy(&mask, row + i / 8, 8);
    a = _mm512_dpbusd_epi32(a, ones, _mm512_maskz_loadu_epi8(mask, codes + i));
  }
  return _mm512_reduce_add_epi32(_mm512_add_epi32(a, b));
}
MANY(bits_vnni, VNNI)

VNNI static int32_t nibbles_vnni(const uint8_t *row, const int8_t *permuted, uint32_t size) {
  const __m512i low = _mm512_set1_epi8(15);
  const int8_t *second = permuted + size / 2;
  __m512i a = _mm512_setzero_si512(), b = a;
  uint32_t i = 0;
  for (; i + 64 <= size / 2; i += 64) {
    __m512i two = _mm512_loadu_si512(row + i);
    a = _mm512_dpbusd_epi32(a, _mm512_and_si512(two, low), _mm512_loadu_si512(permuted + i));
    b = _mm512_dpbusd_epi32(b, _mm512_and_si512(_mm512_srli_epi16(two, 4), low), _mm512_loadu_si512(second + i));
  }
  if (i < size / 2) {
    const __mmask64 half = 0xFFFFFFFFu;
    __m512i two = _mm512_maskz_loadu_epi8(half, row + i);
    a = _mm512_dpbusd_epi32(a, _mm512_and_si512(two, low), _mm512_maskz_loadu_epi8(half, permuted + i));
    b = _mm512_dpbusd_epi32(b, _mm512_and_si512(_mm512_srli_epi16(two, 4), low),
                            _mm512_maskz_loadu_epi8(half, second + i));
  }
  return _mm512_reduce_add_epi32(_mm512_add_epi32(a, b));
}
MANY(nibbles_vnni, VNNI)

#endif /* HAVE_X86 */

#if HAVE_NEON

static int32_t bits_neon(const uint8_t *row, const int8_t *codes, uint32_t size) {
  static const uint8_t single_bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t wanted = vld1q_u8(single_bits);
  int32x4_t sums = vdupq_n_s32(0);
  for (uint32_t i = 0; i < size; i += 16) {
    uint8x16_t spread = vcombine_u8(vdup_n_u8(row[i / 8]), vdup_n_u8(row[i / 8 + 1]));
    int8x16_t chosen = vandq_s8(vreinterpretq_s8_u8(vtstq_u8(spread, wanted)), vld1q_s8(codes + i));
    sums = vpadalq_s16(sums, vpaddlq_s8(chosen));
  }
  return vaddvq_s32(sums);
}
MANY(bits_neon, )

static int32_t nibbles_neon(const uint8_t *row, const int8_t *permuted, uint32_t size) {
  const uint8x16_t low = vdupq_n_u8(15);
  int32x4_t sums = vdupq_n_s32(0);
  for (uint32_t i = 0; i < size / 2; i += 16) {
    uint8x16_t two = vld1q_u8(row + i);
    int8x16_t first = vreinterpretq_s8_u8(vandq_u8(two, low)), second = vreinterpretq_s8_u8(vshrq_n_u8(two, 4));
    int8x16_t x = vld1q_s8(permuted + i), y = vld1q_s8(permuted + size / 2 + i);
    sums = vpadalq_s16(sums, vmull_s8(vget_low_s8(first), vget_low_s8(x)));
    sums = vpadalq_s16(sums, vmull_high_s8(first, x));
    sums = vpadalq_s16(sums, vmull_s8(vget_low_s8(second), vget_low_s8(y)));
    sums = vpadalq_s16(sums, vmull_high_s8(second, y));
  }
  return vaddvq_s32(sums);
}
MANY(nibbles_neon, )

static void half_neon(const uint8_t *row, const float *query, uint32_t size, float *sums) {
  float32x4_t sum[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
  for (uint32_t i = 0; i < size; i += LANES)
    for (uint32_t part = 0; part < 4; part++) {
      float16x4_t value = vreinterpret_f16_u8(vld1_u8(row + 2 * i + 8 * part));
      sum[part] = vaddq_f32(sum[part], vmulq_f32(vcvt_f32_f16(value), vld1q_f32(query + i + 4 * part)));
    }
  for (uint32_t part = 0; part < 4; part++) vst1q_f32(sums + 4 * part, sum[part]);
}

static void single_neon(const uint8_t *row, const float *query, uint32_t size, float *sums) {
  float32x4_t sum[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
  for (uint32_t i = 0; i < size; i += LANES)
    for (uint32_t part = 0; part < 4; part++) {
      float32x4_t value = vreinterpretq_f32_u8(vld1q_u8(row + 4 * i + 16 * part));
      sum[part] = vaddq_f32(sum[part], vmulq_f32(value, vld1q_f32(query + i + 4 * part)));
    }
  for (uint32_t part = 0; part < 4; part++) vst1q_f32(sums + 4 * part, sum[part]);
}

#if defined(__clang__)
#define ARM_TARGET(features) __attribute__((target(features)))
#else
/* gcc's intrinsics ask for the architecture that the feature came with, not for the feature alone. */
#define ARM_TARGET(features) __attribute__((target("arch=armv8.2-a+" features)))
#endif

ARM_TARGET("dotprod") static int32_t bits_dotprod(const uint8_t *row, const int8_t *codes, uint32_t size) {
  static const uint8_t single_bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t wanted = vld1q_u8(single_bits);
  const int8x16_t ones = vdupq_n_s8(1);
  int32x4_t sums = vdupq_n_s32(0);
  for (uint32_t i = 0; i < size; i += 16) {
    uint8x16_t spread = vcombine_u8(vdup_n_u8(row[i / 8]), vdup_n_u8(row[i / 8 + 1]));
    int8x16_t chosen = vandq_s8(vreinterpretq_s8_u8(vtstq_u8(spread, wanted)), vld1q_s8(codes + i));
    sums = vdotq_s32(sums, chosen, ones);
  }
  return vaddvq_s32(sums);
}
MANY(bits_dotprod, ARM_TARGET("dotprod"))

ARM_TARGET("dotprod") static int32_t nibbles_dotprod(const uint8_t *row, const int8_t *permuted, uint32_t size) {
  const uint8x16_t low = vdupq_n_u8(15);
  int32x4_t a = vdupq_n_s32(0), b = a;
  for (uint32_t i = 0; i < size / 2; i += 16) {
    uint8x16_t two = vld1q_u8(row + i);
    a = vdotq_s32(a, vreinterpretq_s8_u8(vandq_u8(two, low)), vld1q_s8(permuted + i));
    b = vdotq_s32(b, vreinterpretq_s8_u8(vshrq_n_u8(two, 4)), vld1q_s8(permuted + size / 2 + i));
  }
  return vaddvq_s32(vaddq_s32(a, b));
}
MANY(nibbles_dotprod, ARM_TARGET("dotprod"))

#if defined(__clang__)
#define ARM_CRC __attribute__((target("crc")))
#else
#define ARM_CRC __attribute__((target("arch=armv8-a+crc")))
#endif

/* The instructions of ARMv8.1, which most cores of ARMv8 have too. */
ARM_CRC static uint32_t crc_instructions(uint32_t crc, const uint8_t *data, uint64_t size) {
  uint64_t word;
  crc = ~crc;
  for (; size >= 8; data += 8, size -= 8) {
    memcpy(&word, data, 8);
    crc = __crc32d(crc, word);
  }
  for (; size; data++, size--) crc = __crc32b(crc, *data);
  return ~crc;
}

static uint32_t crc_neon(uint32_t crc, const uint8_t *data, uint64_t size) {
#if defined(__linux__)
  if (!((getauxval(AT_HWCAP) >> 7) & 1)) return crc_scalar(crc, data, size); /* HWCAP_CRC32 */
  return crc_instructions(crc, data, size);
#elif defined(__APPLE__)
  return crc_instructions(crc, data, size);
#else
  return crc_scalar(crc, data, size);
#endif
}

static int dotprod_supported(void) {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) >> 20) & 1; /* HWCAP_ASIMDDP */
#elif defined(__APPLE__)
  return 1; /* every Apple core that runs macOS has it */
#else
  return 0;
#endif
}

#endif /* HAVE_NEON */

/* Best last. */
static const er_path PATHS[] = {
    {"scalar", always, bits_scalar_many, nibbles_scalar_many, half_scalar, single_scalar, crc_scalar, hadamard_scalar},
#if HAVE_X86
    {"avx2", avx2_supported, bits_avx2_many, nibbles_avx2_many, half_avx2, single_avx2, crc_clmul, hadamard_avx2},
    {"avx512", avx512_supported, bits_avx512_many, nibbles_avx512_many, half_avx512, single_avx512, crc_clmul, hadamard_avx512},
    {"avx512-vnni", vnni_supported, bits_vnni_many, nibbles_vnni_many, half_avx512, single_avx512, crc_clmul, hadamard_avx512},
#endif
#if HAVE_NEON
    {"neon", always, bits_neon_many, nibbles_neon_many, half_neon, single_neon, crc_neon, hadamard_scalar},
    {"neon-dotprod", dotprod_supported, bits_dotprod_many, nibbles_dotprod_many, half_neon, single_neon, crc_neon, hadamard_scalar},
#endif
};
enum { PATH_COUNT = sizeof PATHS / sizeof PATHS[0] };

EXPORT int32_t er_abi(void) { return ABI_VERSION; }
EXPORT int32_t er_path_count(void) { return PATH_COUNT; }
EXPORT const char *er_path_name(int32_t path) { return path >= 0 && path < PATH_COUNT ? PATHS[path].name : ""; }
EXPORT int32_t er_path_supported(int32_t path) { return path >= 0 && path < PATH_COUNT && PATHS[path].supported(); }

/* CRC-32 as zlib has it. */
EXPORT uint32_t er_crc32(int32_t path, uint32_t crc, const uint8_t *data, uint64_t size) {
  return PATHS[path].crc(crc, data, size);
}

/* ------------------------------------------------------------------ rows */

static uint64_t group_of(const er_rows *rows, uint64_t row) {
  if (!rows->reciprocal) return row;
  return (uint64_t)((unsigned __int128)rows->reciprocal * row >> 64);
}

/* Offset of a row in its section; rows are below 2^32, which makes the reciprocal exact. */
static uint64_t row_offset(const er_rows *rows, uint64_t row) {
  uint64_t group = group_of(rows, row);
  return group * rows->group_bytes + (row - group * rows->rows_per_group) * rows->row_bytes;
}

static const uint8_t *row_address(const er_rows *rows, uint64_t row) { return rows->base + row_offset(rows, row); }

static const uint8_t *row_used(const er_rows *rows, uint64_t row) {
  uint64_t offset = row_offset(rows, row);
  rows->hits[offset >> rows->block_shift]++;
  return rows->base + offset;
}

static uint32_t read_u32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return value;
}

static float read_f32(const uint8_t *at) {
  float value;
  memcpy(&value, at, 4);
  return value;
}

/* ------------------------------------------------------------------ scratch */

EXPORT er_scratch *er_scratch_new(void) { return calloc(1, sizeof(er_scratch)); }

EXPORT void er_scratch_free(er_scratch *s) {
  if (!s) return;
  free(s->vector), free(s->rotated), free(s->codes), free(s->permuted), free(s->pool);
  free(s->visited), free(s->touched), free(s->order), free(s->buffer);
  free(s);
}

/* How many rows the last search compared with its query. */
EXPORT uint64_t er_compared(const er_scratch *s) { return s->compared; }

/* What went wrong: the row, its level, errno. */
EXPORT void er_fault(const er_scratch *s, uint64_t *row, int32_t *level, int32_t *error_number) {
  *row = s->bad_row, *level = s->bad_level, *error_number = s->error_number;
}

static int grow(void *pointer, uint64_t count, size_t size) {
  void *old, *grown;
  memcpy(&old, pointer, sizeof old);
  if (count > SIZE_MAX / size || !(grown = realloc(old, (size_t)count * size))) return 0;
  memcpy(pointer, &grown, sizeof grown);
  return 1;
}

static int grow_pool(er_scratch *s, uint64_t wanted) {
  if (wanted <= s->pool_capacity) return 1;
  uint64_t capacity = s->pool_capacity ? s->pool_capacity : 256;
  while (capacity < wanted) capacity *= 2;
  if (!grow(&s->pool, capacity, sizeof *s->pool)) return 0;
  s->pool_capacity = capacity;
  return 1;
}

static int ready_scratch(const er_segment *g, er_scratch *s) {
  uint32_t padded = g->padded_dimension > g->dimension ? g->padded_dimension : g->dimension;
  padded = (padded + 63) / 64 * 64;
  if (padded > s->dimension_capacity) {
    if (!grow(&s->vector, padded, 4) || !grow(&s->rotated, padded, 4) || !grow(&s->codes, padded, 1) ||
        !grow(&s->permuted, padded, 1))
      return 0;
    s->dimension_capacity = padded;
  }
  uint64_t words = g->row_count / 64 + 1;
  if (words > s->visited_words) {
    uint64_t *bigger = calloc(words, 8);
    if (!bigger) return 0;
    free(s->visited);
    s->visited = bigger, s->visited_words = words, s->touched_count = 0;
  }
  return 1;
}

static void forget_visits(er_scratch *s) {
  for (uint64_t i = 0; i < s->touched_count; i++) s->visited[s->touched[i] / 64] = 0;
  s->touched_count = 0;
}

static int visit(er_scratch *s, uint32_t row) {
  uint64_t bit = 1ull << row % 64, *word = s->visited + row / 64, before = *word;
  *word = before | bit;
  return !(before & bit);
}

/* ------------------------------------------------------------------ the query */

static uint32_t power_of_two_in(uint32_t size) {
  uint32_t power = 1;
  while (power * 2 <= size) power *= 2;
  return power;
}

/* The rotation of the codes: random signs and a transform, at the front and at the back by turns. */
static void rotate(const er_path *path, const float *signs, float *values, uint32_t size) {
  uint32_t power = power_of_two_in(size);
  float scale = (float)(1.0 / sqrt((double)power)); /* keeps lengths */
  for (uint32_t turn = 0; turn < 4; turn++) {
    float *part = values + (turn % 2 ? size - power : 0);
    for (uint32_t i = 0; i < size; i++) values[i] *= signs[turn * size + i];
    path->hadamard(part, power);
    for (uint32_t i = 0; i < power; i++) part[i] *= scale;
  }
}

static void prepare_vector(const er_segment *g, er_scratch *s, const float *query) {
  uint32_t lanes = (g->dimension + LANES - 1) / LANES * LANES;
  memcpy(s->vector, query, 4 * (size_t)g->dimension);
  for (uint32_t i = g->dimension; i < lanes; i++) s->vector[i] = 0;
}

/* The query in 8 bits: codes in the order of dimensions, and permuted to the order of the nibbles. */
static void prepare_query(const er_segment *g, er_scratch *s, const float *query) {
  uint32_t size = g->padded_dimension;
  prepare_vector(g, s, query);
  memcpy(s->rotated, query, 4 * (size_t)g->dimension);
  for (uint32_t i = g->dimension; i < size; i++) s->rotated[i] = 0;
  rotate(&PATHS[g->path], g->signs, s->rotated, size);
  float largest = 0;
  for (uint32_t i = 0; i < size; i++) {
    float magnitude = fabsf(s->rotated[i]);
    if (magnitude > largest) largest = magnitude;
  }
  s->scale = largest > 0 ? largest / 127 : 1;
  s->code_sum = 0;
  for (uint32_t i = 0; i < size; i++) {
    /* To the nearest, halves to even: adding and taking away 1.5 * 2^23 does that in any instruction set. */
    float level = (s->rotated[i] / s->scale + 12582912.0f) - 12582912.0f;
    /* in this order NaN, which only a query that is no unit vector can give, is 127 too: its cast would be undefined */
    s->codes[i] = (int8_t)(level < -127 ? -127 : level < 127 ? level : 127);
    s->code_sum += s->codes[i];
  }
  for (uint32_t i = 0; i < size / 2; i++) {
    uint32_t dimension = 64 * (i / 32) + i % 32;
    s->permuted[i] = s->codes[dimension];
    s->permuted[size / 2 + i] = s->codes[dimension + 32];
  }
}

/* ------------------------------------------------------------------ estimates */

static const er_rows *codes_of(const er_segment *g) { return g->walk == WALK_NIBBLES ? &g->nibbles : &g->bits; }

static void estimate_many(const er_segment *g, const er_scratch *s, const uint8_t *const *rows, uint32_t count,
                          float *similarities) {
  const er_path *path = &PATHS[g->path];
  const uint32_t size = g->padded_dimension, factor_at = g->walk == WALK_NIBBLES ? size / 2 : size / 8;
  const int32_t base = g->walk == WALK_NIBBLES ? 15 * s->code_sum : s->code_sum;
  const float scale = s->scale;
  int32_t sums[BATCH];
  if (g->walk == WALK_NIBBLES) path->nibbles(rows, count, s->permuted, size, sums);
  else path->bits(rows, count, s->codes, size, sums);
  for (uint32_t i = 0; i < count; i++) {
    float scaled = (float)(2 * sums[i] - base) * scale, similarity = scaled * read_f32(rows[i] + factor_at);
    similarities[i] = similarity == similarity ? similarity : NO_SIMILARITY; /* a damaged factor */
  }
}

static float estimate(const er_segment *g, er_scratch *s, const uint8_t *row) {
  float similarity;
  s->compared++;
  estimate_many(g, s, &row, 1, &similarity);
  return similarity;
}

/* Asks for the cache lines of a row. */
static void fetch(const er_rows *codes, const uint8_t *row) {
  const uint8_t *line = row - ((uintptr_t)row & 63);
  for (; line < row + codes->row_bytes; line += 64) __builtin_prefetch(line);
}

/* ------------------------------------------------------------------ the pool: best first, equal ones by row */

static int before(float a, uint32_t a_row, float b, uint32_t b_row) { return a > b || (a == b && a_row < b_row); }

static int is_live(const er_scratch *s, uint32_t row) { return !s->excluded || !s->excluded[row]; }

/* Puts a row in its place unless ef live ones are better. Returns its place, or -1: not taken, -2: no memory. */
static int64_t offer(er_scratch *s, float similarity, uint32_t row) {
  item it = item_of(similarity, row);
  uint64_t low = 0, count = s->pool_size;
  if (s->live >= s->ef && it >= s->pool[count - 1]) return -1;
  if (count == s->pool_capacity && !grow_pool(s, count + 1)) return -2;
  item *pool = s->pool;
  /* A search without branches, which no one could foretell. */
  const item *base = pool;
  for (uint64_t left = count; left; ) {
    uint64_t half = (left + 1) / 2;
    base += half & (0 - (uint64_t)(base[half - 1] < it));
    left -= half;
  }
  low = (uint64_t)(base - pool);
  for (uint64_t at = count; at > low; at--) pool[at] = pool[at - 1];
  pool[low] = it;
  s->pool_size++;
  if (low < s->cursor) s->cursor = low;
  if (is_live(s, row) && ++s->live > s->ef) { /* drop what stands behind the ef-th live row */
    s->pool_size--, s->live--;
    while (!is_live(s, row_of(pool[s->pool_size - 1]))) s->pool_size--;
  }
  return (int64_t)low;
}

/* ------------------------------------------------------------------ the walk */

static int similarities_of(const er_segment *g, er_scratch *s, const uint32_t *rows, uint32_t count,
                           float *similarities);

static int bad_link(er_scratch *s, uint64_t row, int32_t level) {
  s->bad_row = row, s->bad_level = level;
  return ER_BAD_LINK;
}

/* Whether a row may be read now; if not, the walk pauses until the caller has made room. */
static int room_for(const er_segment *g, er_scratch *s, const er_rows *rows, uint64_t row) {
  if (s->room < 0) return 1;
  int64_t *coming = &g->absent[(rows->offset + row_offset(rows, row)) >> WINDOW_SHIFT];
  if (*coming > s->room) return 0;
  s->room -= *coming;
  *coming = 0;
  return 1;
}

static uint64_t level_start(const er_segment *g, uint32_t level) { return g->level_starts[level - 1]; }

/* Asks for the codes behind the links of an upper record, before they are compared one by one. */
static void fetch_linked(const er_segment *g, const uint8_t *record, uint64_t start, uint64_t count, uint32_t links) {
  for (uint32_t i = 0; i < links; i++) {
    uint32_t link = read_u32(record + 12 + 4 * i);
    if (link >= count) return;
    uint32_t linked = read_u32(row_address(&g->levels, start + link));
    if (linked < g->row_count) fetch(codes_of(g), row_address(codes_of(g), linked));
  }
}

/* The best row of the upper levels, greedily; records: row, position below, count, m positions. 1: no room. */
static int descend(const er_segment *g, er_scratch *s) {
  const er_rows *codes = codes_of(g);
  while (s->level) {
    uint64_t start = level_start(g, s->level), count = g->level_starts[s->level] - start;
    if (s->position >= count) return bad_link(s, s->row, (int32_t)s->level);
    if (!s->has_record && !room_for(g, s, &g->levels, start + s->position)) return 1;
    const uint8_t *record = row_address(&g->levels, start + s->position);
    uint32_t links = read_u32(record + 8);
    if (links > g->m) return bad_link(s, s->row, (int32_t)s->level);
    if (!s->has_record) {
      row_used(&g->levels, start + s->position);
      s->has_record = 1;
      if (read_u32(record) != s->row) return bad_link(s, s->row, (int32_t)s->level);
      s->best = s->position;
      if (s->room < 0) fetch_linked(g, record, start, count, links);
    }
    for (; s->next_link < links; s->next_link++) {
      uint32_t link = read_u32(record + 12 + 4 * s->next_link);
      if (link >= count) return bad_link(s, s->row, (int32_t)s->level);
      if (!s->has_linked) {
        if (!room_for(g, s, &g->levels, start + link)) return 1;
        s->linked = read_u32(row_used(&g->levels, start + link));
        if (s->linked >= g->row_count) return bad_link(s, s->row, (int32_t)s->level);
        s->has_linked = 1;
      }
      uint32_t linked = s->linked;
      if (!room_for(g, s, codes, linked)) return 1;
      s->has_linked = 0;
      float found = estimate(g, s, row_used(codes, linked));
      if (before(found, linked, s->similarity, s->row)) s->similarity = found, s->row = linked, s->best = link;
    }
    s->next_link = 0, s->has_record = 0;
    if (s->best == s->position) {
      s->position = read_u32(record + 4);
      s->level--;
    } else {
      s->position = s->best;
    }
  }
  return ER_OK;
}

/* Begins a walk or a comparison: the query is prepared. excluded: one flag per row, or NULL; such rows are walked through and
 * never found. */
EXPORT int32_t er_begin(const er_segment *g, er_scratch *s, const float *query, uint64_t ef, const uint8_t *excluded) {
  if (!ready_scratch(g, s)) return ER_NO_MEMORY;
  forget_visits(s);
  prepare_query(g, s, query);
  s->excluded = excluded, s->ef = ef ? ef : 1, s->pool_size = s->live = s->cursor = 0;
  s->phase = STARTING, s->followed = 0, s->level = g->level_count, s->next_link = 0;
  s->has_record = s->has_linked = 0, s->pending = 0;
  s->position = g->entry_position, s->row = g->entry_row;
  s->room = -1, s->exact = 0, s->compared = 0;
  return ER_OK;
}

/* From level 0 on rows are compared by their full vectors, read from the file: for rows that are more alike than the
 * codes can tell. */
EXPORT void er_set_exact(er_scratch *s) { s->exact = 1; }

/* The worst estimate that the walk kept; minus infinity if it kept all that it met. */
EXPORT float er_least(const er_scratch *s) {
  return s->live < s->ef ? -INFINITY : similarity_in(s->pool[s->pool_size - 1]);
}

/* So many bytes of the file may become resident in the next step; negative: any number. */
EXPORT void er_set_room(er_scratch *s, int64_t room) { s->room = room; }

/* From the entry point to the first row on level 0. */
static int enter(const er_segment *g, er_scratch *s) {
  if (s->phase == STARTING) {
    if (!room_for(g, s, codes_of(g), s->row)) return 1;
    s->similarity = estimate(g, s, row_used(codes_of(g), s->row));
    s->phase = DESCENDING;
  }
  int result = descend(g, s);
  if (result) return result;
  if (!s->touched_capacity) {
    if (!grow(&s->touched, 1024, 4)) return ER_NO_MEMORY;
    s->touched_capacity = 1024;
  }
  visit(s, s->row);
  s->touched[s->touched_count++] = s->row;
  s->pending = s->touched_count;
  s->phase = FOLLOWING;
  result = s->exact ? similarities_of(g, s, &s->row, 1, &s->similarity) : ER_OK;
  if (result) return result;
  return offer(s, s->similarity, s->row) == -2 ? ER_NO_MEMORY : ER_OK;
}

/* Marks the links of a row that were not visited and asks for their codes. */
static int unpack(const er_segment *g, er_scratch *s, uint32_t row) {
  const er_rows *codes = codes_of(g);
  const uint64_t mask = (1ull << g->link_bits) - 1;
  /* Reading 8 bytes at a link may go 7 beyond the row: other sections follow this one in the mapping, which the
   * check of the header makes sure of. */
  const uint8_t *record = row_used(&g->links, row);
  uint32_t count = record[0] | (uint32_t)record[1] << 8;
  if (count > g->m0) return bad_link(s, row, 0);
  if (s->touched_count + count > s->touched_capacity) {
    uint64_t capacity = 2 * s->touched_capacity + count;
    if (!grow(&s->touched, capacity, 4)) return ER_NO_MEMORY;
    s->touched_capacity = capacity;
  }
  const uint64_t first = s->touched_count;
  uint32_t *fresh = s->touched + first;
  for (uint32_t i = 0, bit = 16; i < count; i++, bit += g->link_bits) {
    uint64_t word;
    memcpy(&word, record + bit / 8, 8);
    uint64_t link = word >> bit % 8 & mask;
    if (link >= g->row_count) {
      s->touched_count = (uint64_t)(fresh - s->touched); /* or later searches would take these rows as visited */
      return bad_link(s, row, 0);
    }
    *fresh = (uint32_t)link;
    fresh += visit(s, (uint32_t)link);
  }
  s->touched_count = (uint64_t)(fresh - s->touched);
  if (s->room < 0)
    for (uint64_t i = first; i < s->touched_count; i++) fetch(codes, row_address(codes, s->touched[i]));
  return ER_OK;
}

/* Offers rows by their codes; walking: their links are asked for if they are likely to be followed soon. */
static int compare(const er_segment *g, er_scratch *s, const uint32_t *rows, uint32_t count, int walking) {
  const er_rows *codes = codes_of(g);
  const uint8_t *addresses[BATCH];
  float similarities[BATCH];
  if (s->exact) {
    int result = similarities_of(g, s, rows, count, similarities);
    if (result) return result;
  } else {
    s->compared += count;
    for (uint32_t i = 0; i < count; i++) addresses[i] = row_used(codes, rows[i]);
    estimate_many(g, s, addresses, count, similarities);
  }
  for (uint32_t i = 0; i < count; i++) {
    int64_t place = offer(s, similarities[i], rows[i]);
    if (place == -2) return ER_NO_MEMORY;
    if (walking && place >= 0 && (uint64_t)place < s->cursor + TOGETHER) __builtin_prefetch(row_address(&g->links, rows[i]));
  }
  return ER_OK;
}

/* Goes on with the walk; 1: there is no room, 0: the walk is over. */
EXPORT int32_t er_step(const er_segment *g, er_scratch *s) {
  if (s->phase < FOLLOWING) {
    int result = enter(g, s);
    if (result) return result;
  }
  for (;;) {
    if (s->phase == COMPARING) {
      while (s->pending < s->touched_count) {
        const uint32_t *rows = s->touched + s->pending;
        uint64_t left = s->touched_count - s->pending;
        uint32_t count = s->room >= 0 ? 1 : left < BATCH ? (uint32_t)left : BATCH;
        if (!s->exact && !room_for(g, s, codes_of(g), *rows)) return 1;
        int result = compare(g, s, rows, count, 1);
        if (result) return result;
        s->pending += count;
      }
      s->phase = FOLLOWING, s->followed = 0;
    }
    for (; s->followed < TOGETHER; s->followed++) {
      while (s->cursor < s->pool_size && s->pool[s->cursor] & EXPANDED) s->cursor++;
      if (s->cursor >= s->pool_size) break;
      uint32_t row = row_of(s->pool[s->cursor]);
      if (!room_for(g, s, &g->links, row)) return 1;
      s->pool[s->cursor++] |= EXPANDED;
      int result = unpack(g, s, row);
      if (result) return result;
    }
    if (!s->followed) return ER_OK;
    for (uint64_t next = s->cursor; next < s->pool_size && next < s->cursor + TOGETHER; next++)
      __builtin_prefetch(row_address(&g->links, row_of(s->pool[next]))); /* likely the next ones */
    s->phase = COMPARING;
  }
}

/* Instead of a walk: compares these rows (in range, ascending) and no others; 1: there is no room. */
EXPORT int32_t er_compare_rows(const er_segment *g, er_scratch *s, const uint32_t *rows, uint64_t count) {
  const er_rows *codes = codes_of(g);
  while (s->pending < count) {
    const uint32_t *next = rows + s->pending;
    uint64_t left = count - s->pending;
    uint32_t part = s->room >= 0 ? 1 : left < BATCH ? (uint32_t)left : BATCH;
    if (!room_for(g, s, codes, *next)) return 1;
    if (s->room < 0)
      for (uint32_t i = 0; i < part; i++) fetch(codes, row_address(codes, next[i]));
    int result = compare(g, s, next, part, 0);
    if (result) return result;
    s->pending += part;
  }
  return ER_OK;
}

/* ------------------------------------------------------------------ full vectors */

static uint32_t vector_bytes(const er_segment *g) { return g->dimension * (g->vector_type == VECTORS_F16 ? 2 : 4); }

static float similarity_of(const er_segment *g, const er_scratch *s, const uint8_t *row) {
  const er_path *path = &PATHS[g->path];
  uint32_t size = g->dimension / LANES * LANES, rest = g->dimension - size;
  float sums[LANES], more[LANES];
  uint8_t tail[4 * LANES] = {0};
  uint32_t width = g->vector_type == VECTORS_F16 ? 2 : 4;
  void (*product)(const uint8_t *, const float *, uint32_t, float *) = width == 2 ? path->half : path->single;
  product(row, s->vector, size, sums);
  if (rest) {
    memcpy(tail, row + width * size, width * rest);
    product(tail, s->vector + size, LANES, more);
    for (uint32_t lane = 0; lane < LANES; lane++) sums[lane] += more[lane];
  }
  for (uint32_t half = LANES / 2; half; half /= 2)
    for (uint32_t lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  return sums[0];
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void sort_values(uint64_t *values, uint64_t count) {
  if (count > FEW) {
    qsort(values, count, sizeof *values, by_value);
    return;
  }
  for (uint64_t i = 1; i < count; i++) {
    uint64_t value = values[i], at = i;
    for (; at && values[at - 1] > value; at--) values[at] = values[at - 1];
    values[at] = value;
  }
}

static int read_failed(er_scratch *s, int number) {
  s->error_number = number;
  return ER_READ_FAILED;
}

static int read_whole(const er_segment *g, er_scratch *s, uint64_t position, uint8_t *to, uint64_t size) {
  while (size) {
    ssize_t got = pread(g->file, to, size, (off_t)position);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return read_failed(s, got ? errno : 0);
    position += (uint64_t)got, to += got, size -= (uint64_t)got;
  }
  return ER_OK;
}

/* One read covers the rows order[first .. next): its place in the file and its size. */
static uint64_t read_extent(const er_segment *g, const er_scratch *s, uint64_t first, uint64_t count, uint64_t *position,
                            uint64_t *size) {
  uint64_t start = row_offset(&g->vectors, s->order[first] >> 32), end = start + g->vectors.row_bytes, next = first + 1;
  for (; next < count; next++) {
    uint64_t at = row_offset(&g->vectors, s->order[next] >> 32);
    if (at > end + READ_GAP || at + g->vectors.row_bytes > start + READ_SPAN) break;
    end = at + g->vectors.row_bytes > end ? at + g->vectors.row_bytes : end;
  }
  *position = g->vectors.offset + start, *size = end - start;
  return next;
}

/* Calls back with every row named in s->order, read in the order of the file and checked. What is not in the
 * page cache is asked for all at once, so that a disk sees many requests and not one after the other. */
typedef void (*row_reader)(const er_segment *g, er_scratch *s, uint64_t place, const uint8_t *row, void *into);

static int check_and_give(const er_segment *g, er_scratch *s, uint64_t item, const uint8_t *at, row_reader reader,
                          void *into) {
  uint32_t checked = g->vectors.row_bytes - 4;
  if (PATHS[g->path].crc(0, at, checked) != read_u32(at + checked)) {
    s->bad_row = item >> 32, s->bad_level = -1;
    return ER_BAD_ROW;
  }
  reader(g, s, item & 0xFFFFFFFFu, at, into);
  return ER_OK;
}

/* As read_rows, of a file that the caller decrypts: many rows by one call. */
static int read_decrypted(const er_segment *g, er_scratch *s, uint64_t count, row_reader reader, void *into) {
  uint64_t most = READ_SPAN / g->vectors.row_bytes ? READ_SPAN / g->vectors.row_bytes : 1;
  for (uint64_t first = 0; first < count; first += most) {
    uint64_t n = count - first < most ? count - first : most;
    int32_t number = g->read(s->order + first, n, s->buffer);
    if (number) return read_failed(s, number);
    for (uint64_t i = 0; i < n; i++) {
      int result = check_and_give(g, s, s->order[first + i], s->buffer + i * g->vectors.row_bytes, reader, into);
      if (result) return result;
    }
  }
  return ER_OK;
}

static int read_rows(const er_segment *g, er_scratch *s, uint64_t count, row_reader reader, void *into) {
  uint64_t wanted = READ_SPAN + (uint64_t)g->vectors.row_bytes, position, size;
  if (s->buffer_bytes < wanted) {
    if (!grow(&s->buffer, wanted, 1)) return ER_NO_MEMORY;
    s->buffer_bytes = wanted;
  }
  sort_values(s->order, count);
  if (g->read) return read_decrypted(g, s, count, reader, into);
  int asked = 0;
  for (uint64_t first = 0, next; first < count; first = next) {
    next = read_extent(g, s, first, count, &position, &size);
    int have = 0;
#if defined(__linux__) && defined(RWF_NOWAIT)
    if (!asked) {
      struct iovec part = {s->buffer, size};
      have = preadv2(g->file, &part, 1, (off_t)position, RWF_NOWAIT) == (ssize_t)size;
    }
#endif
#if defined(POSIX_FADV_WILLNEED)
    if (!have && !asked) {
      uint64_t later_position, later_size;
      for (uint64_t later = first; later < count;) {
        later = read_extent(g, s, later, count, &later_position, &later_size);
        posix_fadvise(g->file, (off_t)later_position, (off_t)later_size, POSIX_FADV_WILLNEED);
      }
      asked = 1;
    }
#endif
    int result = have ? ER_OK : read_whole(g, s, position, s->buffer, size);
    if (result) return result;
    uint64_t start = position - g->vectors.offset;
    for (uint64_t i = first; i < next; i++) {
      const uint8_t *at = s->buffer + (row_offset(&g->vectors, s->order[i] >> 32) - start);
      result = check_and_give(g, s, s->order[i], at, reader, into);
      if (result) return result;
    }
  }
  return ER_OK;
}

typedef struct {
  float similarity;
  int64_t label;
} scored;

static void take_score(const er_segment *g, er_scratch *s, uint64_t place, const uint8_t *row, void *into) {
  scored *to = (scored *)into + place;
  float similarity = similarity_of(g, s, row);
  to->similarity = similarity == similarity ? similarity : NO_SIMILARITY; /* qsort needs an order */
  memcpy(&to->label, row + vector_bytes(g), 8);
}

static void take_similarity(const er_segment *g, er_scratch *s, uint64_t place, const uint8_t *row, void *into) {
  float similarity = similarity_of(g, s, row);
  ((float *)into)[place] = similarity == similarity ? similarity : NO_SIMILARITY;
}

static int by_score(const void *a, const void *b) {
  const scored *x = a, *y = b;
  if (x->similarity != y->similarity) return x->similarity > y->similarity ? -1 : 1;
  return x->label < y->label ? -1 : x->label > y->label;
}

static void sort_scores(scored *scores, uint64_t count) {
  if (count > FEW) {
    qsort(scores, count, sizeof *scores, by_score);
    return;
  }
  for (uint64_t i = 1; i < count; i++) {
    scored value = scores[i];
    uint64_t at = i;
    for (; at && by_score(&scores[at - 1], &value) > 0; at--) scores[at] = scores[at - 1];
    scores[at] = value;
  }
}

static int grow_order(er_scratch *s, uint64_t count) {
  /* order and, behind it, the scores: one allocation */
  if (count <= s->order_capacity) return 1;
  if (!grow(&s->order, 3 * count, 8)) return 0;
  s->order_capacity = count;
  return 1;
}

/* Of at most BATCH rows, by their full vectors. */
static int similarities_of(const er_segment *g, er_scratch *s, const uint32_t *rows, uint32_t count,
                           float *similarities) {
  if (!grow_order(s, BATCH)) return ER_NO_MEMORY;
  s->compared += count;
  for (uint32_t i = 0; i < count; i++) s->order[i] = (uint64_t)rows[i] << 32 | i;
  return read_rows(g, s, count, take_similarity, similarities);
}

static int score_order(const er_segment *g, er_scratch *s, uint64_t count, uint64_t limit, int64_t *labels,
                       float *similarities, uint64_t *found) {
  scored *scores = (scored *)(s->order + s->order_capacity);
  s->compared += count;
  int result = read_rows(g, s, count, take_score, scores);
  if (result) return result;
  sort_scores(scores, count);
  *found = count < limit ? count : limit;
  for (uint64_t i = 0; i < *found; i++) labels[i] = scores[i].label, similarities[i] = scores[i].similarity;
  return ER_OK;
}

/* Puts live rows of the pool, from place *next on, into s->order: at most `most`, and only while their estimates
 * are not below `least`. */
static uint64_t order_pool(er_scratch *s, uint64_t *next, uint64_t most, float least) {
  uint64_t count = 0;
  for (; *next < s->pool_size && count < most && similarity_in(s->pool[*next]) >= least; ++*next)
    if (is_live(s, row_of(s->pool[*next]))) {
      s->order[count] = (uint64_t)row_of(s->pool[*next]) << 32 | count;
      count++;
    }
  return count;
}

/* Ends a walk: the best `rescore` live rows of the pool by their full vectors; then those whose estimates are so near
 * to the worst of what was found that they may be better, which `margin` says. At most `limit` come out. */
EXPORT int32_t er_finish(const er_segment *g, er_scratch *s, uint64_t limit, uint64_t rescore, float margin,
                         int64_t *labels, float *similarities, uint64_t *found) {
  uint64_t next = 0;
  if (!grow_order(s, s->pool_size + limit)) return ER_NO_MEMORY;
  uint64_t count = order_pool(s, &next, rescore, -INFINITY);
  int result = score_order(g, s, count, limit, labels, similarities, found);
  if (result || *found < limit || !limit) return result;
  count = order_pool(s, &next, UINT64_MAX, similarities[limit - 1] - margin);
  if (!count) return ER_OK;
  scored *scores = (scored *)(s->order + s->order_capacity);
  s->compared += count;
  result = read_rows(g, s, count, take_score, scores);
  if (result) return result;
  for (uint64_t i = 0; i < limit; i++) {
    scores[count + i].label = labels[i];
    scores[count + i].similarity = similarities[i];
  }
  sort_scores(scores, count + limit);
  for (uint64_t i = 0; i < limit; i++) labels[i] = scores[i].label, similarities[i] = scores[i].similarity;
  return ER_OK;
}

/* Many queries, one after the other: queries (count, dimension); labels and similarities (count, limit), found
 * (count), and what er_least says after each (count). */
EXPORT int32_t er_search(const er_segment *g, er_scratch *s, const float *queries, uint64_t count, uint64_t limit,
                         uint64_t ef, uint64_t rescore, float margin, int64_t *labels,
                         float *similarities, uint64_t *found, float *least) {
  for (uint64_t i = 0; i < count; i++) {
    int result = er_begin(g, s, queries + i * g->dimension, ef, NULL);
    if (!result) result = er_step(g, s);
    if (!result)
      result = er_finish(g, s, limit, rescore, margin, labels + i * limit, similarities + i * limit, found + i);
    if (result) return result;
    least[i] = er_least(s);
  }
  return ER_OK;
}

/* The exactly best of these rows (in range) by their full vectors, read from the file. */
EXPORT int32_t er_score_rows(const er_segment *g, er_scratch *s, const float *query, const uint32_t *rows,
                             uint64_t count, uint64_t limit, int64_t *labels, float *similarities, uint64_t *found) {
  if (!ready_scratch(g, s) || !grow_order(s, count)) return ER_NO_MEMORY;
  s->compared = 0;
  prepare_vector(g, s, query);
  for (uint64_t i = 0; i < count; i++) s->order[i] = (uint64_t)rows[i] << 32 | i;
  return score_order(g, s, count, limit, labels, similarities, found);
}

static void take_row(const er_segment *g, er_scratch *s, uint64_t place, const uint8_t *row, void *into) {
  (void)s;
  memcpy((uint8_t *)into + place * g->vectors.row_bytes, row, g->vectors.row_bytes);
}

/* Rows of the full vectors as they are in the file, checked: out (count, row_bytes). */
EXPORT int32_t er_read_rows(const er_segment *g, er_scratch *s, const uint32_t *rows, uint64_t count, uint8_t *out) {
  if (!grow_order(s, count)) return ER_NO_MEMORY;
  for (uint64_t i = 0; i < count; i++) s->order[i] = (uint64_t)rows[i] << 32 | i;
  return read_rows(g, s, count, take_row, out);
}

/* The exactly best rows of a mapped section of full vectors whose blocks were verified. */
EXPORT int32_t er_scan(const er_segment *g, er_scratch *s, const float *query, uint64_t limit, const uint8_t *excluded,
                       int64_t *labels, float *similarities, uint64_t *found) {
  uint64_t count = g->row_count;
  if (!ready_scratch(g, s) || !grow_order(s, count)) return ER_NO_MEMORY;
  s->compared = 0;
  prepare_vector(g, s, query);
  scored *scores = (scored *)(s->order + s->order_capacity);
  uint64_t kept = 0;
  for (uint64_t row = 0; row < count; row++) {
    if (excluded && excluded[row]) continue;
    take_score(g, s, kept++, row_used(&g->vectors, row), scores);
  }
  s->compared = kept;
  sort_scores(scores, kept);
  *found = kept < limit ? kept : limit;
  for (uint64_t i = 0; i < *found; i++) labels[i] = scores[i].label, similarities[i] = scores[i].similarity;
  return ER_OK;
}

/* ------------------------------------------------------------------ the order of rows */

/* Buckets of rows with the same score, as doubly linked lists. */
typedef struct {
  int32_t *score, *next, *previous, *heads;
  uint8_t *placed;
  int32_t top;
} buckets;
enum { TOP_SCORE = 4095 };

static void take_out(buckets *b, int32_t row) {
  if (b->previous[row] >= 0) b->next[b->previous[row]] = b->next[row];
  else b->heads[b->score[row]] = b->next[row];
  if (b->next[row] >= 0) b->previous[b->next[row]] = b->previous[row];
}

static void change_score(buckets *b, int32_t row, int32_t by) {
  if (b->placed[row]) return;
  if (b->score[row] > 0) take_out(b, row);
  b->score[row] += by;
  if (b->score[row] > TOP_SCORE) b->score[row] = TOP_SCORE;
  if (b->score[row] < 0) b->score[row] = 0;
  if (b->score[row] == 0) return;
  int32_t *head = &b->heads[b->score[row]];
  b->next[row] = *head, b->previous[row] = -1;
  if (*head >= 0) b->previous[*head] = row;
  *head = row;
  if (b->score[row] > b->top) b->top = b->score[row];
}

/* Gorder: each next row is the one with the most links and common neighbours with the `window` rows before
 * it. links (count, width): a number and that many rows, all in range; order gets count rows. */
EXPORT int32_t er_order(uint64_t count, uint32_t width, const uint32_t *links, uint64_t window, uint32_t start,
                        uint32_t *order) {
  enum { CROWD = 64 }; /* a row with more links to it than this says little about who belongs together */
  int32_t result = ER_NO_MEMORY;
  if (!count || count > INT32_MAX) return count ? ER_NO_MEMORY : ER_OK; /* no list of 32 bits holds more */
  uint64_t *starts = calloc(count + 1, 8);
  buckets b = {calloc(count, 4), malloc(4 * (size_t)count), malloc(4 * (size_t)count), malloc(4 * (TOP_SCORE + 1)),
               calloc(count, 1), 0};
  uint32_t *incoming = NULL;
  uint64_t *fill = NULL;
  if (!starts || !b.score || !b.next || !b.previous || !b.heads || !b.placed) goto done;
  for (uint64_t i = 0; i < count; i++)
    for (uint32_t j = 0; j < links[i * width]; j++) starts[links[i * width + 1 + j] + 1]++;
  for (uint64_t i = 0; i < count; i++) starts[i + 1] += starts[i];
  incoming = malloc(4 * (size_t)starts[count] + 4);
  fill = malloc(8 * (size_t)count);
  if (!incoming || !fill) goto done;
  memcpy(fill, starts, 8 * (size_t)count);
  for (uint64_t i = 0; i < count; i++)
    for (uint32_t j = 0; j < links[i * width]; j++) incoming[fill[links[i * width + 1 + j]]++] = (uint32_t)i;
  for (int32_t i = 0; i <= TOP_SCORE; i++) b.heads[i] = -1;
  uint64_t unplaced = 0;
  for (uint64_t done = 0; done < count; done++) {
    uint32_t row = start;
    if (done) {
      while (b.top > 0 && b.heads[b.top] < 0) b.top--;
      if (b.top > 0) {
        row = (uint32_t)b.heads[b.top];
      } else {
        while (b.placed[unplaced]) unplaced++;
        row = (uint32_t)unplaced;
      }
    }
    if (b.score[row] > 0) take_out(&b, (int32_t)row);
    b.placed[row] = 1;
    order[done] = row;
    for (int leaving = 0; leaving < 2; leaving++) {
      if (leaving && done < window) break;
      uint64_t at = leaving ? order[done - window] : row;
      int32_t by = leaving ? -1 : 1;
      for (uint32_t j = 0; j < links[at * width]; j++) change_score(&b, (int32_t)links[at * width + 1 + j], by);
      int crowded = starts[at + 1] - starts[at] > CROWD;
      for (uint64_t e = starts[at]; e < starts[at + 1]; e++) {
        uint64_t from = incoming[e];
        change_score(&b, (int32_t)from, by);
        for (uint32_t j = 0; !crowded && j < links[from * width]; j++)
          change_score(&b, (int32_t)links[from * width + 1 + j], by);
      }
    }
  }
  result = ER_OK;
done:
  free(starts), free(b.score), free(b.next), free(b.previous), free(b.heads), free(b.placed), free(incoming), free(fill);
  return result;
}
