package serve

import (
	"log/slog"
	"os"
	"strconv"
)

// holdVariable makes batches deterministic. Triton's tests set it.
const holdVariable = "TRITONSERVER_DELAY_SCHEDULER"

// held returns the number of requests that a batcher waits for before its first batch. 0: none.
func held(log *slog.Logger) int {
	text := os.Getenv(holdVariable)
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return 0
	}
	log.Warn("each batcher waits for its first requests, as tests want it", holdVariable, n)
	return n
}
