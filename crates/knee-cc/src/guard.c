/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls of an algorithm that was loaded at run time, which may divide by zero, follow a wild
 * pointer, or never return. Such a call is left by a jump out of the signal's handler: the
 * algorithm is freestanding C, which holds no lock and owns nothing, and no frame of another
 * language lies between the jump's two ends.
 *
 * A thread's processor time, not the clock on the wall, decides that a call never returns, so that
 * a busy or suspended machine makes no difference.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* A call is given up at the second tick that finds it still running. */
#define TICK_NS 500000000L
#define TICKS 2

struct guard {
	sigjmp_buf back;
	volatile sig_atomic_t ticks;
};

/* The innermost call of this thread. Its access in a handler must not allocate. */
static _Thread_local struct guard *volatile current __attribute__((tls_model("initial-exec")));
static _Thread_local int has_timer;

static const int FAULTS[] = {SIGFPE, SIGSEGV, SIGBUS, SIGILL};
enum { N_FAULTS = sizeof(FAULTS) / sizeof(FAULTS[0]) };
static struct sigaction before[N_FAULTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t timers;

static void on_fault(int signal)
{
	struct guard *guard = current;

	if (guard)
		siglongjmp(guard->back, signal);
	/* Not ours: the earlier handler gets it, as the instruction is tried again. */
	for (int i = 0; i < N_FAULTS; i++)
		if (FAULTS[i] == signal)
			sigaction(signal, &before[i], 0);
}

static void on_tick(int signal)
{
	struct guard *guard = current;

	if (guard && ++guard->ticks >= TICKS)
		siglongjmp(guard->back, signal);
}

static void delete_timer(void *timer)
{
	/* Stored as number + 1, as the first one is 0. */
	timer_delete((timer_t)((intptr_t)timer - 1));
}

static void install(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	sigemptyset(&action.sa_mask);
	action.sa_flags = SA_NODEFER | SA_ONSTACK | SA_RESTART;
	action.sa_handler = on_fault;
	for (int i = 0; i < N_FAULTS; i++)
		sigaction(FAULTS[i], &action, &before[i]);
	action.sa_handler = on_tick;
	sigaction(SIGVTALRM, &action, 0);
	pthread_key_create(&timers, delete_timer);
}

static void start_timer(void)
{
	const struct timespec tick = {0, TICK_NS};
	const struct itimerspec times = {tick, tick};
	struct sigevent event;
	timer_t timer;

	has_timer = 1;
	pthread_once(&once, install);
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGVTALRM;
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer))
		return;
	pthread_setspecific(timers, (void *)((intptr_t)timer + 1));
	timer_settime(timer, 0, &times, 0);
}

/* 0, or the signal that ended the call: SIGVTALRM of one that did not return. */
#define GUARDED(call)                                                                              \
	struct guard guard, *outer = current;                                                      \
	int signal;                                                                                \
                                                                                                   \
	if (!has_timer)                                                                            \
		start_timer();                                                                     \
	guard.ticks = 0;                                                                           \
	signal = sigsetjmp(guard.back, 0);                                                         \
	if (!signal) {                                                                             \
		current = &guard;                                                                  \
		call;                                                                              \
	}                                                                                          \
	current = outer;                                                                           \
	return signal;

int knee_guard_init(void (*f)(void *, void *, const void *), void *c, void *s, const void *p)
{
	GUARDED(f(c, s, p))
}

int knee_guard_ack(void (*f)(void *, void *, const void *, const void *), void *c, void *s,
		   const void *p, const void *ack)
{
	GUARDED(f(c, s, p, ack))
}

int knee_guard_event(void (*f)(void *, void *, const void *, uint32_t), void *c, void *s,
		     const void *p, uint32_t event)
{
	GUARDED(f(c, s, p, event))
}

int knee_guard_window(uint32_t (*f)(void *, void *, const void *), void *c, void *s, const void *p,
		      uint32_t *result)
{
	GUARDED(*result = f(c, s, p))
}

int knee_guard_observe(void (*f)(const void *, const void *, uint32_t *), const void *s,
		       const void *p, uint32_t *out)
{
	GUARDED(f(s, p, out))
}

int knee_guard_violated(const char *(*f)(const void *, const void *), const void *s, const void *p,
			const char **result)
{
	GUARDED(*result = f(s, p))
}
