package runner

import (
	"fmt"
	"strings"

	"tuner/measure"
)

// EngineShare is the share of a control group's memory that an engine may hold. The rest is for
// this program, for the page cache of the model files, and for what an engine takes between two
// looks of the guard. On control groups of version 2 a container may end as a whole when its memory
// runs out (memory.oom.group), and this program with it. So the engine has to end before.
const EngineShare = 0.85

// memoryError means that an engine used more memory than it may.
type memoryError struct {
	used, limit int64 // bytes
	group       int64 // bytes that the control group allows, if the limit is a share of it; else 0
}

func (e *memoryError) Error() string {
	text := "the engine uses " + measure.Memory.Format(float64(e.used)) + " of memory, more than "
	if e.group > 0 {
		return text + fmt.Sprintf("%.0f %% of the %s that the control group (the container) allows", 100*EngineShare, measure.Memory.Format(float64(e.group)))
	}
	return text + fmt.Sprintf("%d times the limit of %s", overrun, measure.Memory.Format(float64(e.limit/overrun)))
}

// overrun multiplies a job's limit: beyond the product, the trial ends. Up to there it has figures,
// which show by how much the limit is missed.
const overrun = 2

// limitOf returns the error for an engine that takes too much: over twice the job's own limit, or
// over its share of the control group, whichever is less. A limit of 0 is none.
func (r *Runner) limitOf(job Job) memoryError {
	share := int64(EngineShare * float64(r.options.Group))
	own := overrun * job.MemoryLimit
	if share > 0 && (own == 0 || share < own) {
		return memoryError{limit: share, group: r.options.Group}
	}
	return memoryError{limit: own}
}

// allocationTexts are the words with which an engine says that it got no memory: ONNX Runtime's
// arena, the C++ library, the C library and Go. A thread needs memory for its stack.
func allocationTexts() []string {
	return []string{"Failed to allocate memory", "std::bad_alloc", "bad allocation", "Cannot allocate memory", "cannot allocate memory", "pthread_create failed"}
}

// nameMemory gives a failure the stage of memory if the engine said that it got none where the
// kernel refuses it more than its share of the control group. Elsewhere it lacked other memory, such
// as a GPU's or another machine's, and the failure stays what it is.
func (r *Runner) nameMemory(f *measure.Failure) *measure.Failure {
	if f == nil || !r.options.Refuses || f.Stage == measure.StageMemory {
		return f
	}
	for _, text := range allocationTexts() {
		if strings.Contains(f.Reason, text) {
			return &measure.Failure{Stage: measure.StageMemory, Model: f.Model, Reason: fmt.Sprintf("the engine got no more memory; the control group (the container) allows %.0f MB: %s",
				float64(r.options.Group)/1e6, f.Reason)}
		}
	}
	return f
}
