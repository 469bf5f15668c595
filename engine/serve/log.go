package serve

import "tuner/engine/logging"

// write writes the lines of requests until stop is called, and then those that wait.
func write(r *logging.Requests) (stop func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Write()
	}()
	return func() {
		r.Close()
		<-ended
	}
}
