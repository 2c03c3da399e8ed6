/* A library that begins a parallel region as soon as it is loaded, as constructors of C++ may. */
__attribute__((constructor)) static void begin(void) {
#pragma omp parallel num_threads(2)
    ;
}
