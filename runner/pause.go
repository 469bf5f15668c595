package runner

import "syscall"

// pauser is an engine that can be kept from running.
type pauser interface {
	pause()
	resume()
}

// Pause keeps the engine, if one runs, from using the CPU until the next Measure or Close: while another engine is measured, the threads of
// an idle one must not spin. An engine of another kind than tuner's own processes goes on.
func (r *Runner) Pause() {
	if r.pool == nil {
		return
	}
	if p, ok := r.pool.engine.(pauser); ok {
		p.pause()
	}
}

// resume is the end of a pause.
func (r *Runner) resume() {
	if r.pool == nil {
		return
	}
	if p, ok := r.pool.engine.(pauser); ok {
		p.resume()
	}
}

// pause stops the process's group where it is. The kernel kills a stopped process, too, when its parent dies.
func (p *process) pause() { p.signal(syscall.SIGSTOP) }

// resume lets it go on; one that was not stopped does not notice.
func (p *process) resume() { p.signal(syscall.SIGCONT) }

// signal sends a signal to the group of a process that is ready; any other is left alone.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == ready {
		_ = syscall.Kill(-p.cmd.Process.Pid, s) // fails only when it is already gone
	}
}
