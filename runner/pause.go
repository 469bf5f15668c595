package runner

// Pauser is an Engine that can be kept from running. Neither method blocks.
type Pauser interface {
	Pause()
	Resume() // does nothing while the engine is not paused
}

// Pause keeps the engine, if one runs, from using the CPU until the next Measure or Close: while
// another engine is measured, the threads of an idle one must not spin. An engine of another kind
// than tuner's own processes goes on.
func (r *Runner) Pause() {
	if r.pool == nil {
		return
	}
	if p, ok := r.pool.engine.(Pauser); ok {
		p.Pause()
	}
}

// resume is the end of a pause.
func (r *Runner) resume() {
	if r.pool == nil {
		return
	}
	if p, ok := r.pool.engine.(Pauser); ok {
		p.Resume()
	}
}
