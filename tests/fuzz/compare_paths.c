/* Every path of the kernel that this processor has, against the scalar one, on random rows: sums of codes, products
 * of vectors, checksums and the transform must be the same to the bit.
 *
 *     cc -O2 -std=c11 -ffp-contract=off -o compare_paths tests/fuzz/compare_paths.c -lm && ./compare_paths
 *
 * The digest of what came out is the same on every machine. For ARM from another one: aarch64-linux-gnu-gcc -static and
 * the same flags, run by qemu-aarch64. */

#include "../../edgerag/index/hnsw/kernel.c"

#include <stdio.h>

enum { MOST = 2048, ROWS = 70 };

static uint64_t state = 88172645463325252u;

static uint64_t drawn(void) { /* xorshift64: the same numbers everywhere */
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

static void fill(void *to, size_t size) {
  for (size_t i = 0; i < size; i++) ((uint8_t *)to)[i] = (uint8_t)(drawn() >> 32);
}

static float between(float least, float most) { return least + (most - least) * (float)(drawn() >> 40) / (float)(1 << 24); }

static uint32_t digest; /* of all that the scalar path gives: the same on every machine */

static int differs(const char *path, const char *what, uint32_t size, const void *a, const void *b, size_t bytes) {
  digest = crc_scalar(digest, a, bytes);
  if (!memcmp(a, b, bytes)) return 0;
  printf("%s: %s of %u differs from the scalar one\n", path, what, size);
  return 1;
}

static int compare_codes(const er_path *path, uint32_t size) {
  static uint8_t rows[ROWS][MOST];
  static int8_t codes[MOST];
  const uint8_t *addresses[ROWS];
  int32_t expected[ROWS], found[ROWS];
  int faults = 0;
  fill(rows, sizeof rows);
  for (uint32_t i = 0; i < size; i++) codes[i] = (int8_t)((int32_t)(drawn() % 255) - 127);
  memset(rows[0], 0xFF, MOST), memset(rows[1], 0, MOST); /* the extremes of the sums */
  if (drawn() % 2) memset(codes, 127, MOST);
  for (uint32_t i = 0; i < ROWS; i++) addresses[i] = rows[i] + i % 5; /* at any alignment */
  PATHS[0].bits(addresses, ROWS, codes, size, expected), path->bits(addresses, ROWS, codes, size, found);
  faults += differs(path->name, "bits", size, expected, found, sizeof found);
  PATHS[0].nibbles(addresses, ROWS, codes, size, expected), path->nibbles(addresses, ROWS, codes, size, found);
  return faults + differs(path->name, "nibbles", size, expected, found, sizeof found);
}

static int compare_products(const er_path *path, uint32_t size) {
  static uint8_t row[4 * MOST + 1];
  static float query[MOST];
  float expected[LANES], found[LANES];
  int faults = 0;
  for (uint32_t i = 0; i < size; i++) query[i] = between(-1, 1);
  fill(row, sizeof row);
  for (uint32_t i = 0; i < size; i++) row[1 + 2 * i + 1] &= 0xBB; /* numbers, subnormal ones too; no NaN */
  PATHS[0].half(row + 1, query, size, expected), path->half(row + 1, query, size, found);
  faults += differs(path->name, "half", size, expected, found, sizeof found);
  for (uint32_t i = 0; i < size; i++) {
    float value = between(-1, 1);
    memcpy(row + 1 + 4 * i, &value, 4);
  }
  PATHS[0].single(row + 1, query, size, expected), path->single(row + 1, query, size, found);
  return faults + differs(path->name, "single", size, expected, found, sizeof found);
}

static int compare_checksums(const er_path *path, uint32_t size) {
  static uint8_t data[MOST + 16];
  fill(data, sizeof data);
  uint32_t start = (uint32_t)(drawn() % 16), crc = (uint32_t)drawn();
  uint32_t expected = PATHS[0].crc(crc, data + start, size), found = path->crc(crc, data + start, size);
  return differs(path->name, "crc", size, &expected, &found, sizeof found);
}

static int compare_transforms(const er_path *path, uint32_t size) {
  static float expected[MOST], found[MOST];
  for (uint32_t i = 0; i < size; i++) expected[i] = found[i] = between(-1, 1);
  PATHS[0].hadamard(expected, size), path->hadamard(found, size);
  return differs(path->name, "transform", size, expected, found, size * sizeof *found);
}

int main(void) {
  int faults = 0;
  for (int number = 0; number < PATH_COUNT; number++) {
    const er_path *path = &PATHS[number];
    state = 88172645463325252u, digest = 0;
    if (!path->supported()) {
      printf("%s: not on this processor\n", path->name);
      continue;
    }
    int before = faults;
    for (uint32_t size = 64; size <= MOST - 64; size += 64)
      for (int turn = 0; turn < 4; turn++) faults += compare_codes(path, size);
    for (uint32_t size = 0; size <= MOST; size += LANES) faults += compare_products(path, size);
    for (uint32_t size = 0; size <= MOST; size++) faults += compare_checksums(path, size);
    for (uint32_t size = 64; size <= MOST; size *= 2) faults += compare_transforms(path, size);
    if (faults == before) printf("%s: as scalar, digest %08x\n", path->name, (unsigned)digest);
  }
  return faults != 0;
}
