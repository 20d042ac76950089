/*
 * Binds libmalt.so to glibc symbols that glibc 2.17 already has.
 *
 * build.sh includes this before every C file. Linking on a newer glibc would
 * otherwise pick the newest version of each symbol, and the library would not
 * load on an older system. tests/go/elf_test.go reads the result: if it names a
 * new symbol, add it here with the version that `readelf --dyn-syms` of an old
 * libc shows for it.
 *
 * No system header may be included here: the files that follow set _GNU_SOURCE
 * and the like first.
 */
#if defined(__linux__) && !defined(__ASSEMBLER__)

#if defined(__x86_64__)
#define MALT_GLIBC_BASE "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define MALT_GLIBC_BASE "GLIBC_2.17"
#endif

#ifdef MALT_GLIBC_BASE
#define MALT_OLD(name) __asm__(".symver " #name ", " #name "@" MALT_GLIBC_BASE)

/* Moved from libpthread to libc, with a new version, in glibc 2.32 … 2.34. */
MALT_OLD(pthread_create);
MALT_OLD(pthread_detach);
MALT_OLD(pthread_join);
MALT_OLD(pthread_key_create);
MALT_OLD(pthread_key_delete);
MALT_OLD(pthread_getspecific);
MALT_OLD(pthread_setspecific);
MALT_OLD(pthread_once);
MALT_OLD(pthread_sigmask);
MALT_OLD(pthread_kill);
MALT_OLD(pthread_getattr_np);
MALT_OLD(pthread_attr_getstack);
MALT_OLD(pthread_attr_getstacksize);
MALT_OLD(pthread_attr_setstacksize);
MALT_OLD(pthread_mutex_trylock);

/* Go's runtime, too, starts its threads through threads.c. Weak, since cgo links each package by itself. */
__asm__(".weak maltc_pthread_create");
#define pthread_create maltc_pthread_create

/* Moved from libdl. */
MALT_OLD(dlopen);
MALT_OLD(dlsym);
MALT_OLD(dlclose);
MALT_OLD(dlerror);

/* A new version for each change of behaviour that does not concern us. */
MALT_OLD(exp);
MALT_OLD(log);
MALT_OLD(pow);
#endif

#endif
