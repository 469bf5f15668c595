// A thread that makes runs, so that none of Go's processors is held meanwhile. See lane.go.
#ifndef TUNER_ORT_LANE_H
#define TUNER_ORT_LANE_H

#include "shim.h"

typedef struct lane lane;

// Starts the thread. It writes a byte to the descriptor after each run. Returns NULL if there is no
// thread or memory for it.
lane *lane_new(int ends);
// Ends the thread. No run may be under way. The descriptor stays open.
void lane_free(lane *l);
// Makes api_run_plan on the thread. The last run must have ended.
void lane_run(lane *l, api_table api, void *session, void *memory, run_plan *plan);
// What api_run_plan returned, after the byte of its end has been read.
void *lane_status(lane *l);

#endif
