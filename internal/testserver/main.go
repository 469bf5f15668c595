package testserver

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
)

// sleepers limits the number of requests that may be near the end of their service at a time. A
// thread that sleeps in the kernel keeps its processor (P) for up to 10 ms, until the runtime takes
// it away. With too few processors the server would not notice requests that arrive meanwhile.
const sleepers = 64

// Run runs a server with the flags in args until the context ends. It writes its Addresses to out
// as a line of JSON.
func Run(ctx context.Context, args []string, out, messages io.Writer) error {
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	if o.Law != nil {
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), sleepers))
	}
	s, err := New(o)
	if err != nil {
		return err
	}
	addresses, err := s.Listen(ctx)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(addresses); err != nil {
		return errors.Join(fmt.Errorf("cannot write the addresses: %w", err), s.Close())
	}
	select {
	case <-ctx.Done():
	case <-s.ended: // DieAfter
	}
	return s.Close()
}

// parse reads the flags.
func parse(args []string, messages io.Writer) (o Options, err error) {
	flags := flag.NewFlagSet("testserver", flag.ContinueOnError)
	flags.SetOutput(messages)
	const laws = "service times: none, deterministic:D, exponential:MEAN or bimodal:D:SHARE:FACTOR (default none)"
	flags.Func("law", laws, func(text string) error {
		o.Law, err = ParseLaw(text)
		return err
	})
	flags.IntVar(&o.Servers, "servers", 0, "requests served at a time; 0: any number")
	flags.DurationVar(&o.Stall.Every, "stall-every", 0, "nothing is served at each multiple of this …")
	flags.DurationVar(&o.Stall.For, "stall-for", 0, "… for so long")
	flags.Uint64Var(&o.Seed, "seed", 0, "of the law")
	flags.IntVar(&o.Records, "records", 0, "requests that the record holds; 0: 2^20")
	flags.StringVar(&o.HTTP, "http", "", "where to listen, host:port (default any free port)")
	flags.StringVar(&o.GRPC, "grpc", "", "likewise")
	f := &o.Faults
	flags.BoolVar(&f.Silent, "silent", false, "never answer an inference")
	flags.IntVar(&f.FailEvery, "fail-every", 0, "answer each so many-th inference by an error")
	flags.IntVar(&f.CloseEvery, "close-every", 0, "HTTP: close a connection after so many inferences")
	flags.IntVar(&f.DieAfter, "die-after", 0, "end after so many inferences")
	flags.BoolVar(&f.LongBody, "long-body", false, "HTTP: announce a byte more than comes")
	flags.BoolVar(&f.BadHead, "bad-head", false, "HTTP: answer inferences with text that is not HTTP")
	flags.StringVar(&f.Datatype, "datatype", "", "of the input in the metadata (default FP32)")
	if err := flags.Parse(args); err != nil {
		return Options{}, err
	}
	if flags.NArg() > 0 {
		return Options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, nil
}
