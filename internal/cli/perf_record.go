package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tuner/internal/cli/arguments"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/measure/arrivals"
)

// recordOptions are the flags of perf record.
type recordOptions struct {
	output, match, size string
	from, length        time.Duration
	seed                uint64
}

func newPerfRecord(con console) *cobra.Command {
	var o recordOptions
	cmd := verb(&cobra.Command{
		Use:   "record LOG",
		Short: "Make a trace of the requests in an access log",
		Long: `Writes the instants of requests in a log as a trace, which perf, profile and gate replay (load.arrivals: {trace: FILE}). LOG may be an
access log of nginx, Apache or Envoy, JSON lines, or the log of Triton or tuner serve (both with --log-verbose=1). It may also be a trace.
- is stdin. Time stamps of whole seconds are spread at random over their second.`,
		Example: `  tuner perf record access.log --match /v2/models/bert/infer -o trace.csv
  tuner perf record trace.csv --from 10m --for 1m -o minute.csv
  tuner perf -m bert --arrivals '{trace: trace.csv}' --goodput 50ms`,
		Args: arguments.Usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return recordTrace(con, o, args[0]) },
	})
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "`file` of the trace (default stdout)")
	f.StringVar(&o.match, "match", "", "only lines with this `text`, such as the path of a model")
	f.DurationVar(&o.from, "from", 0, "begin this long after the first request")
	f.DurationVar(&o.length, "for", 0, "length of the trace (default: to the end)")
	f.StringVar(&o.size, "size", "", "`field` of JSON lines, NAME=VALUE, or column of a trace: the size of each request, such as its tokens (a trace keeps its column size)")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the spread of whole seconds")
	return cmd
}

func recordTrace(con console, o recordOptions, path string) error {
	if o.from < 0 || o.length < 0 {
		return exit.Usagef("--from and --for must not be below 0")
	}
	in := con.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return exit.Usagef("cannot read log %q: %v", path, durable.Cause(err))
		}
		defer f.Close()
		in = f
	}
	rec, err := arrivals.Record(in, arrivals.Selection{Match: o.match, From: o.from, For: o.length, Seed: o.seed, Size: o.size})
	if err != nil {
		return exit.With(exit.Usage, arrivals.InFile(path, err))
	}
	write := func(w io.Writer) error { return arrivals.WriteTrace(w, rec.Instants, rec.Sizes) }
	if o.output == "" {
		err = write(con.out)
	} else {
		err = exit.OfFiles(durable.WriteNamed(o.output, write))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(con.err, "tuner: %s\n", recordingText(rec))
	return nil
}

// recordingText describes a recording for people.
func recordingText(rec arrivals.Recording) string {
	span := rec.Instants[len(rec.Instants)-1]
	text := fmt.Sprintf("%s in %v, %.4g requests/s on average", words.Count(len(rec.Instants), "request"), span.Round(time.Millisecond),
		float64(len(rec.Instants)-1)/span.Seconds())
	if rec.Other > 0 {
		text += fmt.Sprintf("; %s left out", words.Count(rec.Other, "other request"))
	}
	if rec.Foreign > 0 {
		text += fmt.Sprintf("; %s without a time stamp", words.Count(rec.Foreign, "line"))
	}
	if rec.Sizeless > 0 {
		text += fmt.Sprintf("; %s without a size left out", words.Count(rec.Sizeless, "request"))
	}
	if rec.IsWhole {
		text += "; the time stamps are whole seconds, so the requests were spread at random over each"
	}
	return text
}
