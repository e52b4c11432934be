// The C library's libm, loaded when one of its functions is called: at the start of each process
// that takes as long as opening the store, and what the program does usually needs none of them.
// SQLite's archive refers to them for functions in SQL, and the C++ library's for reading numbers.
//
// The linker puts the functions below into the place of those whose names they carry (--wrap, see
// CMakeLists.txt); who calls them, and what they answer, stays the same.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace {

void* function_of_libm(const char* name) {
    static void* const library = ::dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
    if (found == nullptr) {
        std::fprintf(stderr, "trinco: libm.so.6 has no %s or is missing: %s\n", name, ::dlerror());
        std::abort();
    }
    return found;
}

}  // namespace

#define TRINCO_LATE(result, name, parameters, arguments)                                          \
    extern "C" result __wrap_##name parameters;                                                   \
    extern "C" result __wrap_##name parameters {                                                  \
        static auto* const own = reinterpret_cast<result(*) parameters>(function_of_libm(#name)); \
        return own arguments;                                                                     \
    }
#define TRINCO_LATE_OF_ONE(name) TRINCO_LATE(double, name, (double x), (x))
#define TRINCO_LATE_OF_TWO(name) TRINCO_LATE(double, name, (double x, double y), (x, y))

TRINCO_LATE_OF_ONE(acos)
TRINCO_LATE_OF_ONE(acosh)
TRINCO_LATE_OF_ONE(asin)
TRINCO_LATE_OF_ONE(asinh)
TRINCO_LATE_OF_ONE(atan)
TRINCO_LATE_OF_TWO(atan2)
TRINCO_LATE_OF_ONE(atanh)
TRINCO_LATE_OF_ONE(cos)
TRINCO_LATE_OF_ONE(cosh)
TRINCO_LATE_OF_ONE(exp)
TRINCO_LATE_OF_TWO(fmod)
TRINCO_LATE_OF_ONE(log)
TRINCO_LATE_OF_TWO(pow)
TRINCO_LATE_OF_ONE(round)
TRINCO_LATE_OF_ONE(sin)
TRINCO_LATE_OF_ONE(sinh)
TRINCO_LATE_OF_ONE(sqrt)
TRINCO_LATE_OF_ONE(tan)
TRINCO_LATE_OF_ONE(tanh)
TRINCO_LATE_OF_ONE(trunc)
TRINCO_LATE(long, lround, (double x), (x))
TRINCO_LATE(long long, llround, (double x), (x))
TRINCO_LATE(int, fegetround, (), ())
TRINCO_LATE(int, fesetround, (int mode), (mode))
