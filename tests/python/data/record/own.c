/* A program with a function of its own under a name that the C library's printf must not reach. */
#include <stdarg.h>
#include <stdio.h>

int vfprintf(FILE *file, const char *format, va_list list) {
    (void)format;
    (void)list;
    return fputs("its own\n", file);
}

int main(int count, char **arguments) {
    (void)arguments;
    return printf("%d\n", count) < 0;
}
