// A store of large freed blocks of memory, for the next allocations of about the same size.
//
// A new block from the system costs a page fault for each of its pages. This is more than most
// programs of elementwise operations compute. XLA allocates each result with posix_memalign and
// frees it with free. weft_keep_blocks replaces these two by functions of this file, in the table
// through which jaxlib's library calls them. Other libraries do not see the replacements.
//
// Each block, in the store or not, remains a block of glibc's with glibc's size. So any code may
// free or reallocate any block, including blocks that were allocated before or elsewhere.
//
// The store is bounded. Blocks that are not used for some seconds are returned to the system, and
// so are all blocks when an allocation fails. When a new block is needed, the system may take the
// pages of stored blocks, which it does if memory is short.

#include "common.h"

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_FINDS_FAULTS  // of memory; the sanitizer cannot check kept blocks
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_FINDS_FAULTS
#endif
#endif

#if defined(__linux__) && defined(__GLIBC__) && defined(__LP64__) && !defined(WEFT_FINDS_FAULTS)
#define WEFT_KEEPS_BLOCKS
#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#elif defined(_WIN32)
#include <malloc.h>
#endif

#ifdef WEFT_KEEPS_BLOCKS

namespace weft {
namespace {

constexpr size_t kSmallest = 128 << 10;  // bytes: glibc maps blocks of at least this size
constexpr size_t kManyPages = 4 << 20;   // bytes: larger blocks ask for huge pages, as in NumPy
constexpr size_t kUnused = 8;            // at most 1 / kUnused of a reused block is unused
constexpr int kMostBlocks = 1024;

struct Block {
  char* at;
  size_t size;
  int64_t since;  // in nanoseconds, when it was freed
  bool lent;      // the system may take its pages
};

// All is zero at first. It is never destroyed, since threads free memory while a process ends.
struct Store {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  size_t bound, bytes;
  int64_t patience;  // in nanoseconds
  int count;
  bool watched;               // the thread that runs Watch exists
  Block blocks[kMostBlocks];  // the block freed first comes first
} store;

class Lock {
 public:
  Lock() { pthread_mutex_lock(&store.lock); }
  ~Lock() { pthread_mutex_unlock(&store.lock); }
};

int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

// Advises the system about the pages that a block holds whole.
void Advise(char* at, size_t size, int advice) {
  const uintptr_t page = sysconf(_SC_PAGESIZE), start = reinterpret_cast<uintptr_t>(at);
  const uintptr_t first = (start + page - 1) / page * page, last = (start + size) / page * page;
  const int before = errno;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, advice);
  errno = before;  // glibc's posix_memalign does not set errno; failed advice is harmless
}

// The functions below that take from the store are called under its lock.

char* Remove(int i) {
  char* const at = store.blocks[i].at;
  store.bytes -= store.blocks[i].size;
  --store.count;
  std::memmove(store.blocks + i, store.blocks + i + 1, (store.count - i) * sizeof(Block));
  return at;
}

// The smallest block that fits; of equal ones the last freed, which the caches may still hold.
char* Take(size_t alignment, size_t size) {
  int best = -1;
  for (int i = store.count - 1; i >= 0; --i) {
    const Block& block = store.blocks[i];
    if (block.size < size || block.size - size > size / kUnused) continue;
    if (reinterpret_cast<uintptr_t>(block.at) % alignment) continue;
    if (best < 0 || block.size < store.blocks[best].size) best = i;
  }
  return best < 0 ? nullptr : Remove(best);
}

void Lend() {
#ifdef MADV_FREE
  for (int i = 0; i < store.count; ++i) {
    Block& block = store.blocks[i];
    if (!block.lent) Advise(block.at, block.size, MADV_FREE);
    block.lent = true;
  }
#endif
}

// Frees the blocks that were freed before `last`, oldest first; one at a time, as each takes long.
void FreeOlder(int64_t last) {
  for (;;) {
    char* oldest = nullptr;
    {
      Lock lock;
      if (store.count && store.blocks[0].since < last) oldest = Remove(0);
    }
    if (!oldest) return;
    // Not every block is a mapping of its own, so glibc may not return its pages by itself: advise
    // first.
    Advise(oldest, malloc_usable_size(oldest), MADV_DONTNEED);
    std::free(oldest);
  }
}

// Runs until the store is empty.
void* Watch(void*) {
  for (;;) {
    int64_t patience;
    {
      Lock lock;
      if (!store.count) {
        store.watched = false;
        return nullptr;
      }
      patience = store.patience;
    }
    const int64_t pause = std::min<int64_t>(patience / 4, 999999999);  // a second at most
    const timespec wait{0, pause};
    nanosleep(&wait, nullptr);
    FreeOlder(Now() - patience);
  }
}

// Starts a thread that takes no signals. Without it the bound still holds.
bool StartWatching() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const bool started = !pthread_create(&thread, &attributes, Watch, nullptr);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void Keep(char* at, size_t size) {
  for (;;) {
    char* dropped = nullptr;
    {
      Lock lock;
      if (size > store.bound) {
        dropped = at;
      } else if (store.count == kMostBlocks || store.bytes + size > store.bound) {
        dropped = Remove(0);
      } else {
        store.blocks[store.count++] = {at, size, Now(), false};
        store.bytes += size;
        if (!store.watched) store.watched = StartWatching();
      }
    }
    if (!dropped) return;
    std::free(dropped);
    if (dropped == at) return;
  }
}

// In the place of posix_memalign.
int AllocateAligned(void** to, size_t alignment, size_t size) {
  if (size < kSmallest || !alignment) return posix_memalign(to, alignment, size);
  {
    Lock lock;
    if (char* const kept = Take(alignment, size)) {
      *to = kept;
      return 0;
    }
    Lend();
  }
  int failed = posix_memalign(to, alignment, size);
  if (failed == ENOMEM) {
    FreeOlder(INT64_MAX);
    failed = posix_memalign(to, alignment, size);
  }
#ifdef MADV_HUGEPAGE
  if (!failed && size >= kManyPages) Advise(static_cast<char*>(*to), size, MADV_HUGEPAGE);
#endif
  return failed;
}

// Replaces free. XLA aligns its blocks, so most other blocks are recognized by their address only.
void Free(void* memory) {
  if (memory && reinterpret_cast<uintptr_t>(memory) % 64 == 0) {
    const size_t size = malloc_usable_size(memory);
    if (size >= kSmallest) return Keep(static_cast<char*>(memory), size);
  }
  std::free(memory);
}

// --- the table of jaxlib's library ----------------------------------------------------------------

// The slots through which a library calls posix_memalign and free.
struct Slots {
  void** allocate;
  void** free;
};

const char kLibrary[] = "/libjax_common.so";

// Finds the slots; stops at jaxlib's library. Slots that the linker has made read-only count as missing.
int FindSlots(dl_phdr_info* info, size_t, void* found) {
  const size_t length = std::strlen(info->dlpi_name), end = sizeof(kLibrary) - 1;
  if (length < end || std::strcmp(info->dlpi_name + length - end, kLibrary)) return 0;
  const ElfW(Dyn)* dynamic = nullptr;
  uintptr_t sealed = 0, sealed_end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(start);
    if (header.p_type == PT_GNU_RELRO) sealed = start, sealed_end = start + header.p_memsz;
  }
  const ElfW(Rela)* calls = nullptr;
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  size_t size = 0;
  ElfW(Sxword) kind = 0;
  for (; dynamic && dynamic->d_tag != DT_NULL; ++dynamic) {
    const auto value = dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_JMPREL) calls = reinterpret_cast<const ElfW(Rela)*>(value);
    if (dynamic->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(value);
    if (dynamic->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(value);
    if (dynamic->d_tag == DT_PLTRELSZ) size = value;
    if (dynamic->d_tag == DT_PLTREL) kind = value;
  }
  if (!calls || !symbols || !names || kind != DT_RELA) return 1;
  Slots& slots = *static_cast<Slots*>(found);
  for (size_t i = 0; i < size / sizeof(*calls); ++i) {
    const char* const name = names + symbols[ELF64_R_SYM(calls[i].r_info)].st_name;
    const uintptr_t at = info->dlpi_addr + calls[i].r_offset;
    if (at >= sealed && at < sealed_end) continue;
    if (!std::strcmp(name, "posix_memalign")) slots.allocate = reinterpret_cast<void**>(at);
    if (!std::strcmp(name, "free")) slots.free = reinterpret_cast<void**>(at);
  }
  return 1;
}

bool ReplaceCalls() {
  Slots slots{};
  dl_iterate_phdr(FindSlots, &slots);
  if (!slots.allocate || !slots.free) return false;
  // A child of fork has the store, and not the thread that watches it.
  const auto lock = [] { pthread_mutex_lock(&store.lock); };
  const auto unlock = [] { pthread_mutex_unlock(&store.lock); };
  const auto start = [] {
    store.watched = false;
    pthread_mutex_unlock(&store.lock);
  };
  if (pthread_atfork(lock, unlock, start)) return false;
  __atomic_store_n(slots.free, reinterpret_cast<void*>(&Free), __ATOMIC_RELEASE);
  __atomic_store_n(slots.allocate, reinterpret_cast<void*>(&AllocateAligned), __ATOMIC_RELEASE);
  return true;
}

}  // namespace

void* AllocateBytes(size_t size) {
  void* memory = nullptr;
  return AllocateAligned(&memory, 64, size) ? nullptr : memory;
}

void FreeBytes(void* memory) { Free(memory); }

}  // namespace weft

// Sets the bounds of the store: at most `bound` bytes in total, and each block for at most
// `seconds` without a use. Returns false if blocks cannot be kept on this system or with this
// jaxlib.
extern "C" bool weft_keep_blocks(uint64_t bound, double seconds) {
#ifdef __AVX2__
  if (!__builtin_cpu_supports("avx2")) return false;  // this file is compiled for AVX2
#endif
  static const bool replaced = weft::ReplaceCalls();
  {
    weft::Lock lock;
    weft::store.bound = replaced ? bound : 0;
    weft::store.patience = static_cast<int64_t>(seconds * 1e9);
    if (weft::store.bytes <= weft::store.bound) return replaced;
  }
  weft::FreeOlder(INT64_MAX);
  return replaced;
}

extern "C" uint64_t weft_count_kept_bytes() {
  weft::Lock lock;
  return weft::store.bytes;
}

extern "C" void weft_free_kept_blocks() { weft::FreeOlder(INT64_MAX); }

#else

namespace weft {

void* AllocateBytes(size_t size) {
#ifdef _WIN32
  return _aligned_malloc(size, 64);
#else
  return std::aligned_alloc(64, (size + 63) / 64 * 64);
#endif
}

void FreeBytes(void* memory) {
#ifdef _WIN32
  _aligned_free(memory);
#else
  std::free(memory);
#endif
}

}  // namespace weft

extern "C" bool weft_keep_blocks(uint64_t, double) { return false; }
extern "C" uint64_t weft_count_kept_bytes() { return 0; }
extern "C" void weft_free_kept_blocks() {}

#endif
