package serve

import (
	"log/slog"
	"os"
	"strconv"
)

// These variables make batches deterministic. Triton's tests set them.
const (
	holdVariable        = "TRITONSERVER_DELAY_SCHEDULER"
	holdBacklogVariable = "TRITONSERVER_BACKLOG_DELAY_SCHEDULER"
)

// held returns the number of requests that a batcher waits for before its first batch, as a variable
// says it. 0: none.
func held(log *slog.Logger, variable string) int {
	text := os.Getenv(variable)
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return 0
	}
	log.Warn("each batcher waits for its first requests, as tests want it", variable, n)
	return n
}
