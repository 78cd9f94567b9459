// Counts the heap allocations of a process, from outside and while it runs:
//   MALLOC_COUNT_FILE=FILE LD_PRELOAD=malloc_count.so PROGRAM
// FILE holds one 64-bit counter in the byte order of the machine; a reader takes the difference of
// two looks. Every malloc, calloc, realloc and aligned form counts as one; free does not.
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static _Atomic uint64_t before_start;
static _Atomic uint64_t* count = &before_start;

__attribute__((constructor)) static void share_counter(void) {
  const char* path = getenv("MALLOC_COUNT_FILE");
  if (!path) return;
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof *count) != 0) _exit(97);
  void* shared = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) _exit(97);
  close(file);
  count = shared;
}

static void counted(void) { atomic_fetch_add_explicit(count, 1, memory_order_relaxed); }

void* malloc(size_t size) { return counted(), __libc_malloc(size); }
void* calloc(size_t n, size_t size) { return counted(), __libc_calloc(n, size); }
void* realloc(void* old, size_t size) { return counted(), __libc_realloc(old, size); }
void* memalign(size_t alignment, size_t size) {
  return counted(), __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  void* memory = memalign(alignment, size);
  if (!memory) return ENOMEM;
  *out = memory;
  return 0;
}
