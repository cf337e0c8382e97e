/*
 * Preloaded into redis-server to step its wall clock: adds the nanoseconds in the
 * shared file CLOCK_STEP_FILE to the time of day. The monotonic clock stays true,
 * as it does when an administrator sets the date.
 *
 * It asks the kernel and not the functions that it replaces: finding those takes
 * memory, and Redis' allocator asks for the time before it gives any. libfaketime
 * hangs there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000

static const int64_t *step; /* NULL until the library is set up */

__attribute__((constructor)) static void open_step(void)
{
	const char *name = getenv("CLOCK_STEP_FILE");
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		abort(); /* a clock that cannot be stepped would let tests pass */
	close(fd);
	step = p;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int err = (int)syscall(SYS_clock_gettime, clock, ts);

	if (err == 0 && step && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		int64_t ns = (int64_t)ts->tv_sec * SECOND + ts->tv_nsec + __atomic_load_n(step, __ATOMIC_RELAXED);

		ts->tv_sec = ns / SECOND;
		ts->tv_nsec = ns % SECOND;
	}
	return err;
}

int gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;
	int err = clock_gettime(CLOCK_REALTIME, &ts);

	(void)zone;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return err;
}

time_t time(time_t *t)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (t)
		*t = ts.tv_sec;
	return ts.tv_sec;
}
