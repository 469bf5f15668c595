package runner

// Pauser is an Engine that can be stopped from running for a while. Neither method blocks.
type Pauser interface {
	Pause()
	Resume() // does nothing if the engine is not paused
}

// Pause keeps the engine, if one runs, from using the CPU until the next Measure or Close. While
// another engine is measured, the threads of an idle one must not spin. An engine that is not a
// Pauser keeps running.
func (r *Runner) Pause() {
	if r.pool == nil {
		return
	}
	if p, ok := r.pool.engine.(Pauser); ok {
		p.Pause()
	}
}

// resume ends a pause.
func (r *Runner) resume() {
	if r.pool == nil {
		return
	}
	if p, ok := r.pool.engine.(Pauser); ok {
		p.Resume()
	}
}
