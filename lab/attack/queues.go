package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
	"tuner/internal/hostinfo"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// queues: many requests that wait, are cancelled, or use each model's single resources.
func queues() []attack {
	return []attack{
		{"B3", "20,000 queued requests cancelled at once, over gRPC", "others are served meanwhile, the queue is empty within 10 s", cancelAll},
		{"B3", "4,000 clients that hang up over HTTP", "others are served meanwhile, the queue is empty within 10 s", hangAllUp},
		{"B3", "20,000 queued requests that expire at once", "all are refused, others are served meanwhile", expireAll},
		{"B4", "65,536 priority levels", "a request costs less than 3 times the CPU time that it costs with one", manyLevels},
		{"B5", "200 idle models beside a busy one", "a request costs less than 1.5 times the CPU time that it costs alone", idleModels},
		{"B7", "4,000 requests that wait over HTTP", "they cost less than a tenth of a core", waiting},
	}
}

// slowModel multiplies large matrices as often as its input says, about 10 ms each.
func slowModel() []byte {
	g := build.NewGraph("slow")
	n := g.Input("N", onnx.Int64, onnx.Fixed(1))
	x := g.Node("Expand", []string{g.Floats("half", []float32{0.5}, 1, 1), g.Int64s("shape", []int64{512, 512}, 2)})
	x = g.Node("Mul", []string{x, g.Node("Cast", []string{n}, build.IntAttribute("to", int64(onnx.Float)))})
	for range 100 {
		x = g.Node("MatMul", []string{x, x})
	}
	g.OutputAs("OUT", x, onnx.Float, onnx.Fixed(512), onnx.Fixed(512))
	return marshal(g.Model())
}

// jammed serves a slow model with one instance and a queue, and keeps it busy.
func (s *scene) jammed(ctx context.Context, config string) (*server, error) {
	err := errors.Join(s.add("simple", "simple", ""), s.put("slow", slowModel(), "max_batch_size: 0\ninstance_group [{count: 1}]\n"+config))
	if err != nil {
		return nil, err
	}
	return s.serve(ctx, "", []string{"simple", "slow"})
}

// queued sends n requests to the slow model on one connection, and returns a function that cancels
// them.
func (v *server) queued(ctx context.Context, n int, timeout int64) (cancel func(), answers *errgroup.Group, err error) {
	conn, err := dialGRPC(v.at.GRPC, grpc.WithInitialWindowSize(1<<20))
	if err != nil {
		return nil, nil, err
	}
	ctx, end := context.WithCancel(ctx)
	client := pb.NewGRPCInferenceServiceClient(conn)
	m := message("slow", "N", "INT64", []int64{1}, int64s(1))
	if timeout > 0 {
		m.Parameters = map[string]*pb.InferParameter{"timeout": {ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: timeout}}}
	}
	answers = &errgroup.Group{}
	for range n {
		answers.Go(func() error {
			_, err := client.ModelInfer(ctx, m)
			return err
		})
	}
	return func() { end(); _ = conn.Close() }, answers, nil
}

// pending returns the number of requests that wait for a model.
func (v *server) pending(ctx context.Context, model string) (int, error) {
	page, err := api.Metrics(ctx, v.at.Metrics)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "nv_inference_pending_request_count{model=\""+model+"\"") {
			fields := strings.Fields(line)
			return strconv.Atoi(fields[len(fields)-1])
		}
	}
	return 0, fmt.Errorf("the metrics say nothing of the queue of %s", model)
}

// drains waits until no request waits for a model, while others are served.
func (v *server) drains(ctx context.Context, model string, patience time.Duration) (string, error) {
	begin := time.Now()
	for {
		if err := v.adds(ctx, 10*time.Second); err != nil {
			return "", err
		}
		n, err := v.pending(ctx, model)
		if err != nil {
			return "", err
		}
		if n == 0 {
			return fmt.Sprintf("empty after %.1f s", time.Since(begin).Seconds()), v.serves(ctx)
		}
		if time.Since(begin) > patience {
			return "", fmt.Errorf("%d requests wait after %v", n, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// fills waits until at least n requests wait for a model.
func (v *server) fills(ctx context.Context, model string, n int) error {
	for ctx.Err() == nil {
		if got, err := v.pending(ctx, model); err != nil || got >= n {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("the queue of %s did not fill: %w", model, ctx.Err())
}

func cancelAll(ctx context.Context, s *scene) (string, error) {
	v, err := s.jammed(ctx, "")
	if err != nil {
		return "", err
	}
	var cancels []func()
	for range 2 { // a connection has 16,384 calls at most
		cancel, _, err := v.queued(ctx, 10_000, 0)
		if err != nil {
			return "", err
		}
		cancels = append(cancels, cancel)
	}
	if err := v.fills(ctx, "slow", 19_000); err != nil {
		return "", err
	}
	for _, cancel := range cancels {
		cancel()
	}
	return v.drains(ctx, "slow", 10*time.Second)
}

func hangAllUp(ctx context.Context, s *scene) (string, error) {
	v, err := s.jammed(ctx, "")
	if err != nil {
		return "", err
	}
	body, header := binaryBody("N", "INT64", []int64{1}, int64s(1))
	conns, err := crowd(ctx, 4000, v.at.HTTP, post("/v2/models/slow/infer", header, string(body)))
	if err != nil {
		return "", err
	}
	if err := v.fills(ctx, "slow", len(conns)-300); err != nil {
		return "", err
	}
	hangUp(conns)
	return v.drains(ctx, "slow", 10*time.Second)
}

func expireAll(ctx context.Context, s *scene) (string, error) {
	// As in Triton, a request can only shorten the timeout of the model's policy. Without a policy
	// its timeout has no effect.
	v, err := s.jammed(ctx, "dynamic_batching { default_queue_policy { default_timeout_microseconds: 600000000 allow_timeout_override: true } }\n")
	if err != nil {
		return "", err
	}
	var all errgroup.Group
	for range 2 {
		cancel, answers, err := v.queued(ctx, 10_000, 3_000_000)
		if err != nil {
			return "", err
		}
		defer cancel()
		all.Go(answers.Wait)
	}
	if err := v.fills(ctx, "slow", 10_000); err != nil {
		return "", err
	}
	seen, err := v.drains(ctx, "slow", 15*time.Second)
	if err == nil && all.Wait() == nil {
		err = errors.New("nothing expired")
	}
	return seen, err
}

// cpu returns the CPU time that the server has used.
func (v *server) cpu() (time.Duration, error) {
	usage, err := hostinfo.Process(v.at.PID)
	return usage.CPU, err
}

// rests waits until the server uses no CPU time. ONNX Runtime lets each thread of a new session spin
// for some 30 ms of CPU time, so a server with many models is busy for seconds after it is ready.
func (v *server) rests(ctx context.Context) error {
	const look, tick = 300 * time.Millisecond, 10 * time.Millisecond
	for {
		before, err := v.cpu()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("the server computes although nobody asks for anything")
		case <-time.After(look):
		}
		if after, err := v.cpu(); err != nil || after-before <= tick {
			return err
		}
	}
}

// costs returns the CPU time of a request to a model with the inputs of simple.
func (v *server) costs(ctx context.Context, model string, n int) (time.Duration, error) {
	body, _ := sum()
	request := post("/v2/models/"+model+"/infer", "", body)
	conn, err := dial(ctx, "tcp", v.at.HTTP)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := v.rests(ctx); err != nil {
		return 0, err
	}
	before, err := v.cpu()
	if err != nil {
		return 0, err
	}
	buffer := make([]byte, 64<<10)
	for range n {
		if _, err := conn.Write([]byte(request)); err != nil {
			return 0, err
		}
		if k, err := conn.Read(buffer); err != nil || !strings.HasPrefix(string(buffer[:k]), "HTTP/1.1 200") {
			return 0, errors.Join(fmt.Errorf("got %s", cell(string(buffer[:k]))), err)
		}
	}
	after, err := v.cpu()
	return (after - before) / time.Duration(n), err
}

// ratio compares the costs of requests in two places, in turn.
func ratio(first, second func() (time.Duration, error), most float64) (string, error) {
	var a, b time.Duration
	for range 3 {
		x, err1 := first()
		y, err2 := second()
		if err := errors.Join(err1, err2); err != nil {
			return "", err
		}
		a, b = a+x/3, b+y/3
	}
	seen := fmt.Sprintf("%v against %v, %.2f times", b, a, float64(b)/float64(a))
	if float64(b) > most*float64(a) {
		return "", errors.New(seen)
	}
	return seen, nil
}

func manyLevels(ctx context.Context, s *scene) (string, error) {
	levels := func(n int) string {
		return fmt.Sprintf("max_batch_size: 8\ndynamic_batching { priority_levels: %d default_priority_level: %d }\n", n, n)
	}
	if err := errors.Join(s.add("simple", "simple", ""), s.add("one", "simple", levels(1)), s.add("many", "simple", levels(65_536))); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple", "one", "many"})
	if err != nil {
		return "", err
	}
	return ratio(func() (time.Duration, error) { return v.costs(ctx, "one", 2000) },
		func() (time.Duration, error) { return v.costs(ctx, "many", 2000) }, 3)
}

func idleModels(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	alone, err := s.serve(ctx, "", []string{"simple"})
	if err != nil {
		return "", err
	}
	all := []string{"simple"}
	for i := range 200 {
		all = append(all, fmt.Sprint("idle", i))
		if err := s.add(all[len(all)-1], "simple", ""); err != nil {
			return "", err
		}
	}
	beside, err := s.serve(ctx, "", all)
	if err != nil {
		return "", err
	}
	return ratio(func() (time.Duration, error) { return alone.costs(ctx, "simple", 5000) },
		func() (time.Duration, error) { return beside.costs(ctx, "simple", 5000) }, 1.5)
}

// waiting measures the server with requests that wait for each other's batch, which computes
// nothing meanwhile.
func waiting(ctx context.Context, s *scene) (string, error) {
	err := errors.Join(s.add("simple", "simple", ""),
		s.add("patient", "simple", "max_batch_size: 65536\ndynamic_batching { max_queue_delay_microseconds: 60000000 }\n"))
	if err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple", "patient"})
	if err != nil {
		return "", err
	}
	body, _ := sum()
	conns, err := crowd(ctx, 4000, v.at.HTTP, post("/v2/models/patient/infer", "", body))
	if err != nil {
		return "", err
	}
	if err := v.fills(ctx, "patient", len(conns)-100); err != nil {
		return "", err
	}
	const look = 4 * time.Second
	before, err1 := v.cpu()
	time.Sleep(look)
	after, err2 := v.cpu()
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	share := (after - before).Seconds() / look.Seconds()
	hangUp(conns)
	seen := fmt.Sprintf("%d requests cost %.3f cores", len(conns), share)
	if share > 0.1 {
		return "", errors.New(seen)
	}
	return seen, v.serves(ctx)
}
