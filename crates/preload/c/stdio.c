/* Buffered input and output of the C library, which itself passes no wrapper: what it has read or written is told by
 * its buffers before and after a call. Not seen: scanf, and streams of wide characters. */
#include <string.h>

#include "real.h"

#undef fread_unlocked
#undef fwrite_unlocked

/* Where no bytes are wanted, the C library touches no file, though its headers say that nobody passes NULL: so the
 * compiler must not know what is asked. */
static inline int is_missing(const FILE *file)
{
    __asm__("" : "+r"(file));
    return file == NULL;
}

/* Bytes that were read and that nobody has taken. */
static size_t unread(const FILE *file)
{
    return (size_t)(file->_IO_read_end - file->_IO_read_ptr);
}

/* Bytes that were given and that are not written. */
static size_t unsent(const FILE *file)
{
    return (size_t)(file->_IO_write_ptr - file->_IO_write_base);
}

/* A call of a stream that has read or written nothing has not waited for its file, however long it took. */
#define ENDED 0x30     /* flags: the end was met, or an error */
#define IN_FILE 0x2000 /* it has a descriptor */

/* Its descriptor; -1 of a stream in memory. */
static int number_of(const FILE *file)
{
    return file->_flags & IN_FILE ? file->_fileno : -1;
}

static void has_filled(struct thread *self, const FILE *file, uint64_t begin, size_t bytes)
{
    if (bytes || file->_flags & ENDED) {
        has_read(self, number_of(file), begin, (ssize_t)bytes);
    }
}

static void has_sent(struct thread *self, const FILE *file, uint64_t begin, size_t bytes)
{
    if (bytes) {
        has_written(self, number_of(file), begin, (ssize_t)bytes);
    }
}

#define ITEMS(size) ((size_t)result * (size))

/* `taken`: how many bytes the call has handed over. */
#define INPUT(type, file, taken, call) \
    struct thread *self = current(); \
    if (UNLIKELY(!self || is_missing(file))) { \
        return call; \
    } \
    before(self); \
    size_t there = unread(file); \
    uint64_t begin = ticks(); \
    type result = call; \
    has_filled(self, file, begin, (size_t)(taken) + unread(file) - there); \
    return result

/* One byte: mostly it is there. */
#define INPUT_BYTE(file, taken, call) \
    if (LIKELY((file)->_IO_read_ptr < (file)->_IO_read_end)) { \
        resolve_once(); \
        return call; \
    } \
    INPUT(int, file, taken, call)

EXPORT size_t fread(void *to, size_t size, size_t count, FILE *file)
{
    INPUT(size_t, file, ITEMS(size), real.fread(to, size, count, file));
}
EXPORT size_t fread_unlocked(void *to, size_t size, size_t count, FILE *file)
{
    INPUT(size_t, file, ITEMS(size), real.fread_unlocked(to, size, count, file));
}
EXPORT size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *file)
{
    INPUT(size_t, file, ITEMS(size), real.__fread_chk(to, room, size, count, file));
}
EXPORT size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count, FILE *file)
{
    INPUT(size_t, file, ITEMS(size), real.__fread_unlocked_chk(to, room, size, count, file));
}
EXPORT char *fgets(char *to, int room, FILE *file)
{
    INPUT(char *, file, result ? strlen(result) : 0, real.fgets(to, room, file));
}
EXPORT char *fgets_unlocked(char *to, int room, FILE *file)
{
    INPUT(char *, file, result ? strlen(result) : 0, real.fgets_unlocked(to, room, file));
}
EXPORT char *__fgets_chk(char *to, size_t size, int room, FILE *file)
{
    INPUT(char *, file, result ? strlen(result) : 0, real.__fgets_chk(to, size, room, file));
}
EXPORT char *__fgets_unlocked_chk(char *to, size_t size, int room, FILE *file)
{
    INPUT(char *, file, result ? strlen(result) : 0, real.__fgets_unlocked_chk(to, size, room, file));
}
EXPORT ssize_t getline(char **to, size_t *room, FILE *file)
{
    INPUT(ssize_t, file, result > 0 ? result : 0, real.getline(to, room, file));
}
EXPORT ssize_t getdelim(char **to, size_t *room, int end, FILE *file)
{
    INPUT(ssize_t, file, result > 0 ? result : 0, real.getdelim(to, room, end, file));
}
EXPORT ssize_t __getdelim(char **to, size_t *room, int end, FILE *file)
{
    INPUT(ssize_t, file, result > 0 ? result : 0, real.__getdelim(to, room, end, file));
}
EXPORT int getc(FILE *file)
{
    INPUT_BYTE(file, result != EOF, real.getc(file));
}
EXPORT int fgetc(FILE *file)
{
    INPUT_BYTE(file, result != EOF, real.fgetc(file));
}
EXPORT int getc_unlocked(FILE *file)
{
    INPUT_BYTE(file, result != EOF, real.getc_unlocked(file));
}
EXPORT int fgetc_unlocked(FILE *file)
{
    INPUT_BYTE(file, result != EOF, real.fgetc_unlocked(file));
}
EXPORT int getchar(void)
{
    INPUT_BYTE(stdin, result != EOF, real.getchar());
}
EXPORT int getchar_unlocked(void)
{
    INPUT_BYTE(stdin, result != EOF, real.getchar_unlocked());
}
/* What getc_unlocked becomes where the compiler inserts its code. */
EXPORT int __uflow(FILE *file)
{
    INPUT(int, file, result != EOF, real.__uflow(file));
}
EXPORT int __underflow(FILE *file)
{
    INPUT(int, file, 0, real.__underflow(file));
}

/* `given`: how many bytes the call was handed, if it has succeeded. */
#define OUTPUT(type, file, given, call) \
    struct thread *self = current(); \
    if (UNLIKELY(!self || is_missing(file))) { \
        return call; \
    } \
    before(self); \
    size_t there = unsent(file); \
    uint64_t begin = ticks(); \
    type result = call; \
    has_sent(self, file, begin, (size_t)(given) + there - unsent(file)); \
    return result

/* One byte: mostly there is room for it. */
#define OUTPUT_BYTE(file, call) \
    if (LIKELY((file)->_IO_write_ptr < (file)->_IO_write_end)) { \
        resolve_once(); \
        return call; \
    } \
    OUTPUT(int, file, result != EOF, call)

EXPORT size_t fwrite(const void *from, size_t size, size_t count, FILE *file)
{
    OUTPUT(size_t, file, ITEMS(size), real.fwrite(from, size, count, file));
}
EXPORT size_t fwrite_unlocked(const void *from, size_t size, size_t count, FILE *file)
{
    OUTPUT(size_t, file, ITEMS(size), real.fwrite_unlocked(from, size, count, file));
}
EXPORT int fputs(const char *text, FILE *file)
{
    OUTPUT(int, file, result != EOF ? strlen(text) : 0, real.fputs(text, file));
}
EXPORT int fputs_unlocked(const char *text, FILE *file)
{
    OUTPUT(int, file, result != EOF ? strlen(text) : 0, real.fputs_unlocked(text, file));
}
EXPORT int puts(const char *text)
{
    OUTPUT(int, stdout, result != EOF ? strlen(text) + 1 : 0, real.puts(text));
}
EXPORT int putc(int byte, FILE *file)
{
    OUTPUT_BYTE(file, real.putc(byte, file));
}
EXPORT int fputc(int byte, FILE *file)
{
    OUTPUT_BYTE(file, real.fputc(byte, file));
}
EXPORT int putc_unlocked(int byte, FILE *file)
{
    OUTPUT_BYTE(file, real.putc_unlocked(byte, file));
}
EXPORT int fputc_unlocked(int byte, FILE *file)
{
    OUTPUT_BYTE(file, real.fputc_unlocked(byte, file));
}
EXPORT int putchar(int byte)
{
    OUTPUT_BYTE(stdout, real.putchar(byte));
}
EXPORT int putchar_unlocked(int byte)
{
    OUTPUT_BYTE(stdout, real.putchar_unlocked(byte));
}
/* What putc_unlocked becomes where the compiler inserts its code. */
EXPORT int __overflow(FILE *file, int byte)
{
    OUTPUT(int, file, result != EOF && byte != EOF, real.__overflow(file, byte));
}
/* Not by the exported names: a program may have functions of its own under these. */
static int formatted(FILE *file, const char *format, va_list list)
{
    OUTPUT(int, file, result > 0 ? result : 0, real.vfprintf(file, format, list));
}
static int checked(FILE *file, int flag, const char *format, va_list list)
{
    OUTPUT(int, file, result > 0 ? result : 0, real.__vfprintf_chk(file, flag, format, list));
}
EXPORT int vfprintf(FILE *file, const char *format, va_list list)
{
    return formatted(file, format, list);
}
EXPORT int __vfprintf_chk(FILE *file, int flag, const char *format, va_list list)
{
    return checked(file, flag, format, list);
}
EXPORT int vprintf(const char *format, va_list list)
{
    return formatted(stdout, format, list);
}
EXPORT int __vprintf_chk(int flag, const char *format, va_list list)
{
    return checked(stdout, flag, format, list);
}

#define FORMATTED(call) \
    va_list list; \
    va_start(list, format); \
    int result = call; \
    va_end(list); \
    return result

EXPORT int printf(const char *format, ...)
{
    FORMATTED(formatted(stdout, format, list));
}
EXPORT int fprintf(FILE *file, const char *format, ...)
{
    FORMATTED(formatted(file, format, list));
}
EXPORT int __printf_chk(int flag, const char *format, ...)
{
    FORMATTED(checked(stdout, flag, format, list));
}
EXPORT int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
    FORMATTED(checked(file, flag, format, list));
}

/* Standard output as the C library made it: a program may put others there, and free them. */
extern struct _IO_FILE_plus _IO_2_1_stdout_;
#define STANDARD_OUTPUT ((FILE *)&_IO_2_1_stdout_)

/* Without a stream all are written; of these only standard output is told. */
static int flush(FILE *file, int (*function)(FILE *))
{
    FILE *told = file ? file : STANDARD_OUTPUT;
    OUTPUT(int, told, 0, function(file));
}

EXPORT int fflush(FILE *file)
{
    resolve_once();
    return flush(file, real.fflush);
}
EXPORT int fflush_unlocked(FILE *file)
{
    resolve_once();
    return flush(file, real.fflush_unlocked);
}

/* What a stream still writes when it is closed; it is no more afterwards. */
#define CLOSE(type, file, call, noted) \
    struct thread *self = current(); \
    int number = number_of(file); \
    ssize_t rest = (ssize_t)unsent(file); \
    uint64_t begin = ticks(); \
    if (self) { \
        before(self); \
        begin = ticks(); \
        has_written(self, number, begin, rest); \
    } \
    forget_files(number, number); \
    type result = call; \
    if (self && ticks() - begin >= short_ticks) { \
        note(self, IO, WAITED, (uint32_t)number, noted); \
    } \
    return result

EXPORT int fclose(FILE *file)
{
    CLOSE(int, file, real.fclose(file), WRITES);
}
/* It waits for a child. */
EXPORT int pclose(FILE *file)
{
    CLOSE(int, file, real.pclose(file), INTERRUPTED);
}
EXPORT FILE *freopen(const char *path, const char *mode, FILE *file)
{
    CLOSE(FILE *, file, real.freopen(path, mode, file), WRITES);
}
EXPORT FILE *freopen64(const char *path, const char *mode, FILE *file)
{
    CLOSE(FILE *, file, real.freopen64(path, mode, file), WRITES);
}

/* What is in standard output's buffer is written when the process has left this library. */
void tell_unsent(struct thread *self)
{
    size_t rest = unsent(STANDARD_OUTPUT);
    uint32_t id = rest ? file_of(self, number_of(STANDARD_OUTPUT)) : OTHER_FILE;
    if (is_stream(id)) {
        note(self, WRITE, 0, id, (uint32_t)rest);
    }
}
