// Package planning is what `tuner plan` does: it reads results and a traffic, and writes the plan.
// Package capacity finds it.
package planning

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/capacity"
	"tuner/capacity/output"
	"tuner/capacity/replica"
	"tuner/capacity/traffic"
	"tuner/capacity/verify"
	"tuner/export"
	"tuner/export/scaling"
	"tuner/internal/cli/arguments"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/report/result"
	"tuner/search/queuesim"
)

// trafficHelp describes the forms of a traffic for the help.
const trafficHelp = `The traffic is one of these: a CSV file with a column timestamp, a request a row. A CSV file with timestamp and rate, or requests. A curve of
rates over a day such as "{0h: 20, 9h: 400, 18h: 300, 24h: 20}". Words such as "peak 400/s, office hours".`

// Options are the flags, and where the output goes.
type Options struct {
	Out, Err   io.Writer
	Traffic    string
	P99        time.Duration // 0: the result's limit
	Prices     []string      // PRICE, or NAME=PRICE
	Autoscaler string
	Balancer   string
	Startup    time.Duration // below 0: as measured
	Window     time.Duration
	Min, Max   int
	// DefaultTolerance keeps Kubernetes' own
	DefaultTolerance bool
	Name             string // of the Deployment; "": of the model
	Prometheus       string
	Explain          bool
	Format           string // text, markdown, json, autoscaler, adaptive or html
	File             string // to write in place of Out; "": Out

	Verify     bool          // replay the worst hour on servers here
	Replay     time.Duration // length of the replayed piece
	Engines    int           // number of servers; 0: as many as fit
	Server     string        // tritonserver's program; "": the bundled engine
	ORTLibrary string        // of the bundled engine; "": that of the campaign
}

// seed is that of all plans: the same question has the same answer.
const seed = 1

// Run plans for the results in the paths. Errors carry their exit code.
func Run(ctx context.Context, o Options, paths []string) error {
	if err := arguments.CheckFormatOf(o.Format, []string{"text", "markdown", "json", "autoscaler", adaptiveFormat, htmlFormat}); err != nil {
		return err
	}
	if o.Traffic == "" {
		return exit.Usagef("no traffic is given: use --traffic with %s", traffic.Forms)
	}
	q, err := o.question()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	results, err := readResults(paths)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if err := o.addPrices(results); err != nil {
		return exit.With(exit.Usage, err)
	}
	if err := o.addLimit(&q, results); err != nil {
		return exit.With(exit.Usage, err)
	}
	if q.Traffic, err = traffic.Read(o.Traffic, seed); err != nil {
		return exit.With(exit.Usage, err)
	}
	p, replicas, err := plan(q, results)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if o.Verify && p.Status == capacity.Satisfied {
		if err := o.verifyPlan(ctx, q, &p, results, replicas); err != nil {
			return err
		}
	}
	if err := o.write(p, func(w io.Writer, format string) error {
		if format == adaptiveFormat {
			return o.writeAdaptive(w, q, p, results, replicas)
		}
		around, err := capacity.WhatIfs(q, replicas)
		if err != nil {
			return err
		}
		return output.WriteHTML(w, p, around)
	}); err != nil {
		return err
	}
	if v := p.Verification; v != nil {
		switch v.Outcome {
		case capacity.Refuted:
			return errors.New("the replay refutes the plan: its servers are slower than the simulation says")
		case capacity.Unclear:
			return exit.With(exit.Inconclusive, errors.New("the replay says nothing about the plan: sending the requests takes too much of this machine"))
		}
	}
	if p.Status == capacity.Infeasible {
		return exit.With(exit.Infeasible, errors.New("the limit cannot be kept: raise it or --max-replicas, or name a result with a faster configuration"))
	}
	return nil
}

// question returns what the flags alone say.
func (o *Options) question() (capacity.Question, error) {
	q := capacity.Question{
		Balancer: queuesim.Balancer(o.Balancer), Scaler: capacity.Scaler(o.Autoscaler), Startup: o.Startup, Window: o.Window,
		Min: o.Min, Max: o.Max, Seed: seed, DefaultTolerance: o.DefaultTolerance,
	}
	var errs []error
	if !slices.Contains(queuesim.Balancers(), q.Balancer) {
		errs = append(errs, fmt.Errorf("--balancer %q: allowed are random, round_robin and least_requests", o.Balancer))
	}
	if !slices.Contains(capacity.Scalers(), q.Scaler) {
		errs = append(errs, fmt.Errorf("--autoscaler %q: allowed are hpa, keda and fixed", o.Autoscaler))
	}
	if o.Name != "" && export.DNSLabel(o.Name) != o.Name {
		errs = append(errs, fmt.Errorf("--name %q: allowed are lower-case letters, digits and -, with a letter first and no - last", o.Name))
	}
	if !o.Verify && (o.Engines != 0 || o.Server != "" || o.ORTLibrary != "") {
		errs = append(errs, errors.New("--verify-engines, --verify-server and --ort-library are of a replay: add --verify"))
	}
	if o.Verify && (o.Engines < 0 || o.Engines > verify.MostEngines) {
		errs = append(errs, fmt.Errorf("--verify-engines %d: allowed are 1 to %d", o.Engines, verify.MostEngines))
	}
	if o.Verify && (o.Replay < traffic.Step || o.Replay > time.Hour) {
		errs = append(errs, fmt.Errorf("--verify-time %v: allowed are %v to %v", o.Replay, traffic.Step, time.Hour))
	}
	if o.P99 < 0 {
		errs = append(errs, fmt.Errorf("--p99 %v: must be above 0", o.P99))
	}
	return q, errors.Join(errs...)
}

// named is a result with the name of its type of machine.
type named struct {
	name, path string
	file       string // result.json
	result     result.Result
}

// readResults reads results. Those of one name get their paths as names.
func readResults(paths []string) (list []named, err error) {
	for _, path := range paths {
		file := path
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			file = filepath.Join(path, result.FileName)
		}
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no analyzed result in %q: run 'tuner analyze %s' first, or name its output folder", path, words.ShellWord(path))
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", file, durable.Cause(err))
		}
		r, err := result.Parse(file, text)
		if err != nil {
			return nil, err
		}
		if err := checkOne(path, r); err != nil {
			return nil, err
		}
		absolute, err := filepath.Abs(file)
		if err != nil {
			return nil, fmt.Errorf("cannot name %q: %w", file, err)
		}
		list = append(list, named{filepath.Base(filepath.Dir(absolute)), path, absolute, r})
	}
	for i := range list {
		for k := range list[:i] {
			if list[k].name == list[i].name {
				list[k].name, list[i].name = list[k].path, list[i].path
			}
			if list[k].result.Model != list[i].result.Model {
				return nil, fmt.Errorf("%s is of the model %q and %s of %q: a plan is for one model on several types of machines",
					list[k].path, list[k].result.Model, list[i].path, list[i].result.Model)
			}
		}
	}
	return list, nil
}

// checkOne refuses a result of several models, and one of a pipeline, since a replica is simulated with one
// model. The error says what a server carries by the result, for that gives the number of servers.
func checkOne(path string, r result.Result) error {
	const alone = "profile each model by itself, and plan each"
	switch carried := carriedBy(r); {
	case len(r.Models) > 0 && carried == "":
		return exit.Usagef("%s is of several models on one server, and a plan is for one model\n    hint: %s", path, alone)
	case len(r.Models) > 0:
		return exit.Usagef("%s is of several models on one server, and a plan is for one model\n    hint: a server carries %s by this result, so your highest traffic over that is the number of servers; or %s", path, carried, alone)
	case len(r.Stages) > 0 && carried == "":
		return exit.Usagef("%s is of a pipeline, and a plan is for one model\n    hint: no configuration keeps the limits, so no number of servers does", path)
	case len(r.Stages) > 0:
		return exit.Usagef("%s is of a pipeline, and a plan is for one model\n    hint: a server carries %s by this result, so your highest rate over that is the number of servers", path, carried)
	}
	return nil
}

// carriedBy says what a server carries in the best configuration; "" without one.
func carriedBy(r result.Result) string {
	for _, c := range r.Configurations {
		if c.Name != r.Best || c.BestLoad == nil {
			continue
		}
		if c.BestLoad.Scale > 0 {
			return fmt.Sprintf("the traffic of the profile × %.3g", c.BestLoad.Scale)
		}
		for _, p := range c.Points {
			if x, ok := p.Values[measure.Throughput]; ok && p.Load == *c.BestLoad {
				return fmt.Sprintf("%.3g infer/s", x.Value)
			}
		}
	}
	return ""
}

// addPrices sets the prices of results.
func (o *Options) addPrices(results []named) error {
	for _, text := range o.Prices {
		name, number, hasName := strings.Cut(text, "=")
		if !hasName {
			name, number = "", text
		}
		price, err := strconv.ParseFloat(number, 64)
		if err != nil || !(price > 0) || math.IsInf(price, 0) {
			return fmt.Errorf("--price %q: must be a number above 0, or NAME=NUMBER", text)
		}
		found := false
		var names []string
		for i := range results {
			names = append(names, results[i].name)
			if !hasName || results[i].name == name {
				results[i].result.Goal.Price, found = price, true
			}
		}
		if !found {
			return fmt.Errorf("--price %q: there is no result %q; the results are %s", text, name, strings.Join(names, ", "))
		}
	}
	if len(results) > 1 {
		for _, r := range results {
			if r.result.Goal.Price == 0 {
				return fmt.Errorf("the price of %s is unknown: types of machines compare by their prices; use --price %s=NUMBER", r.path, r.name)
			}
		}
	}
	return nil
}

// addLimit sets the limit: --p99, or the only one on a percentile in the questions of the results.
// A plan keeps one. To drop the others would promise what the servers need not keep.
func (o *Options) addLimit(q *capacity.Question, results []named) error {
	const p99 = 0.99
	if q.Limit, q.Share = o.P99, p99; o.P99 > 0 {
		return nil
	}
	var found []string
	for _, r := range results {
		for _, c := range r.result.Goal.Constraints {
			quantile, ok := c.Metric.Quantile()
			if !ok || c.Max == nil {
				continue
			}
			q.Limit, q.Share = time.Duration(math.Round(*c.Max*float64(time.Second))), quantile
			if text := fmt.Sprintf("%s ≤ %v", c.Metric, q.Limit); !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	switch {
	case len(found) == 0:
		return fmt.Errorf("%s has no limit on a percentile of the latency: say one with --p99", results[0].path)
	case len(found) > 1:
		return fmt.Errorf("the limits of the results are %s, and a plan keeps one: say with --p99 which latency 99 %% of the requests must keep", strings.Join(found, " and "))
	}
	return nil
}

// plan makes the replicas of all results, and finds the fleet.
func plan(q capacity.Question, results []named) (p capacity.Plan, replicas []replica.Replica, err error) {
	var notes []string
	for _, r := range results {
		list, left, err := capacity.Replicas(r.name, r.result, q.Limit, q.Share, q.Seed)
		if err != nil {
			return capacity.Plan{}, nil, fmt.Errorf("%s: %w", r.path, err)
		}
		replicas, notes = append(replicas, list...), append(notes, left...)
	}
	p, err = capacity.Find(q, results[0].result.Model, replicas)
	p.Notes = append(p.Notes, notes...)
	return p, replicas, err
}

// htmlFormat is the word of --format for the page.
const htmlFormat = "html"

// write writes the plan in its form. costly writes the forms that need further simulations.
func (o *Options) write(p capacity.Plan, costly func(w io.Writer, format string) error) error {
	write := func(w io.Writer) error {
		switch o.Format {
		case "markdown":
			return output.WriteMarkdown(w, p, o.Explain)
		case "json":
			return output.WriteJSON(w, p)
		case adaptiveFormat, htmlFormat:
			return costly(w, o.Format)
		case "autoscaler":
			name := o.Name
			if name == "" {
				name = export.DNSLabel(p.Model)
			}
			return scaling.Write(w, p, scaling.Target{Name: name, Prometheus: o.Prometheus})
		}
		return output.WriteText(w, p, o.Explain)
	}
	if o.File == "" {
		return write(o.Out)
	}
	if err := durable.WriteNamed(o.File, write); err != nil {
		return exit.OfFiles(err)
	}
	fmt.Fprintf(o.Err, "written to %s\n", o.File)
	return nil
}
