#include "lane.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct lane {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int ends; // descriptor for a byte after each run
	int quit;
	run_plan *plan; // of the next run; NULL: none
	api_table api;
	void *session, *memory, *status;
};

static void *lane_main(void *argument) {
	lane *l = argument;
	for (;;) {
		pthread_mutex_lock(&l->mutex);
		while (l->plan == NULL && !l->quit) pthread_cond_wait(&l->changed, &l->mutex);
		run_plan *plan = l->plan;
		l->plan = NULL;
		pthread_mutex_unlock(&l->mutex);
		if (plan == NULL) return NULL;
		l->status = api_run_plan(l->api, l->session, l->memory, plan);
		// The pipe holds at most this byte, so the write is complete, unless a signal comes first.
		while (write(l->ends, "", 1) < 0) continue;
	}
}

// lane_signals sets the signals that a new thread handles: only those of its own mistakes, so that Go
// reports them. All others go to Go's threads.
static void lane_signals(sigset_t *before) {
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
	sigset_t blocked;
	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&blocked, own[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, before);
}

lane *lane_new(int ends) {
	lane *l = calloc(1, sizeof *l);
	if (l == NULL) return NULL;
	l->ends = ends;
	pthread_mutex_init(&l->mutex, NULL);
	pthread_cond_init(&l->changed, NULL);
	sigset_t before;
	lane_signals(&before);
	int failed = pthread_create(&l->thread, NULL, lane_main, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed == 0) return l;
	free(l);
	return NULL;
}

static void lane_wake(lane *l, run_plan *plan, int quit) {
	pthread_mutex_lock(&l->mutex);
	l->plan = plan;
	l->quit = quit;
	pthread_cond_signal(&l->changed);
	pthread_mutex_unlock(&l->mutex);
}

void lane_free(lane *l) {
	lane_wake(l, NULL, 1);
	pthread_join(l->thread, NULL);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->mutex);
	free(l);
}

void lane_run(lane *l, api_table api, void *session, void *memory, run_plan *plan) {
	l->api = api;
	l->session = session;
	l->memory = memory;
	lane_wake(l, plan, 0);
}

void *lane_status(lane *l) { return l->status; }
