package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tuner/analyze"
	"tuner/export"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/measure"
	"tuner/report/figures"
	"tuner/report/result"
	reporttext "tuner/report/text"
)

const (
	mostConfigurations = 5        // configurations that an answer has
	mostResult         = 64 << 20 // largest result.json that is read, in bytes; that of a long campaign has some MB
	mostRuns           = 20       // runs of a comparison
)

type folderIn struct {
	Folder string `json:"folder" jsonschema:"output folder of a campaign"`
}

type answerOut struct {
	Folder  string          `json:"folder"`
	Model   string          `json:"model" jsonschema:"name under which the model is served"`
	Status  string          `json:"status" jsonschema:"satisfied, infeasible (no configuration keeps the limits) or unmeasured"`
	Answer  answer          `json:"answer"`
	Ranking []configuration `json:"ranking" jsonschema:"the best configurations, the best first, and the default"`
	Config  string          `json:"best_config,omitempty" jsonschema:"config.pbtxt of the best configuration"`
	Trials  int             `json:"trials"`
	Files   []string        `json:"files" jsonschema:"what lies in the folder for people and for a server"`
}

type configuration struct {
	Name      string             `json:"name"`
	Rank      int                `json:"rank,omitempty"`
	Default   bool               `json:"default"`
	Satisfies bool               `json:"satisfies" jsonschema:"whether it keeps the limits at its best load"`
	Confirmed bool               `json:"confirmed" jsonschema:"whether it was measured again on fresh launches"`
	Setup     setup              `json:"setup"`
	Load      string             `json:"load,omitempty" jsonschema:"its best load"`
	Gain      *result.Estimate   `json:"gain,omitempty" jsonschema:"factor over the default with its 95 % interval"`
	Values    map[string]*figure `json:"values,omitempty" jsonschema:"figures at that load by metric, in base units: infer/s, seconds, bytes"`
}

type setup struct {
	Provider       string   `json:"execution_provider"`
	Runtime        string   `json:"runtime" jsonschema:"ONNX Runtime build"`
	Precision      string   `json:"precision"`
	Instances      *int     `json:"instance_count,omitempty"`
	IntraOpThreads *int     `json:"intra_op_threads,omitempty" jsonschema:"threads of each instance; 0: one for each core"`
	MaxBatchSize   *int     `json:"max_batch_size,omitempty" jsonschema:"largest batch; 0: no batching"`
	QueueDelay     *float64 `json:"max_queue_delay,omitempty" jsonschema:"longest time that a request waits for a batch, in seconds"`
}

// figure is an estimate with its 95 % interval.
type figure = result.Estimate

// read implements the tool read_answer.
func (s *server) read(_ context.Context, _ *sdk.CallToolRequest, in folderIn) (*sdk.CallToolResult, answerOut, error) {
	dir, r, err := s.result(in.Folder)
	if err != nil {
		return nil, answerOut{}, err
	}
	out := answerOut{
		Folder: dir, Model: r.Model, Status: string(r.Status), Trials: r.Trials, Ranking: ranking(r), Files: s.filesIn(dir, r.Model),
		Answer: answer{State: string(r.Answer.State), Headline: bounded(r.Answer.Headline), Lines: []string{}},
	}
	for _, line := range r.Answer.Lines {
		out.Answer.Lines = append(out.Answer.Lines, bounded(line.Name+": "+line.Text))
	}
	for _, c := range r.Configurations {
		if c.Name == r.Best {
			out.Config = bounded(c.Config)
		}
	}
	return text(out.Answer.text() + "\n" + strings.Join(out.Files, "\n") + "\n"), out, nil
}

// result reads the result of a campaign in a folder that a client names.
func (s *server) result(folder string) (string, result.Result, error) {
	dir, err := s.roots.Folder(folder)
	if err != nil {
		return "", result.Result{}, err
	}
	path := filepath.Join(dir, result.FileName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", result.Result{}, exit.Usagef("there is no result in %q yet: a campaign writes it at its end, and stop_campaign ends one", folder)
	case err == nil && (!info.Mode().IsRegular() || info.Size() > mostResult):
		return "", result.Result{}, exit.Usagef("cannot read %q: it is no file of at most %d bytes", path, mostResult)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", result.Result{}, exit.Usagef("cannot read %q: %v", path, durable.Cause(err))
	}
	r, err := result.Parse(path, text)
	return dir, r, err
}

// ranking returns the best configurations, and the default.
func ranking(r result.Result) []configuration {
	list := []configuration{}
	for i, c := range r.Configurations {
		if i >= mostConfigurations && !c.Default {
			continue
		}
		one := configuration{Name: c.Name, Rank: c.Rank, Default: c.Default, Satisfies: c.Satisfies, Confirmed: c.Confirmed, Setup: setup(c.Setup), Gain: c.Gain}
		for _, p := range c.Points {
			if c.BestLoad != nil && p.Load == *c.BestLoad {
				one.Load, one.Values = p.Load.String(), valuesOf(p)
			}
		}
		list = append(list, one)
	}
	return list
}

// valuesOf returns the figures of a point that people ask for.
func valuesOf(p result.Point) map[string]*figure {
	values := map[string]*figure{}
	asked := []measure.Metric{measure.Throughput, measure.LatencyAvg, measure.LatencyP50, measure.LatencyP99, measure.Memory}
	for metric, e := range p.Values {
		model, of := metric.Split()
		isSum := metric == measure.Throughput && !p.Load.Mix.IsZero() // of different models, which tells nothing
		if slices.Contains(asked, of) && !isSum {
			values[string(of.Of(model))] = &e
		}
	}
	return values
}

// filesIn lists what a campaign wrote for people and servers.
func (s *server) filesIn(dir, model string) []string {
	list := []string{}
	for _, f := range []struct{ name, about string }{
		{"report.md", "the report"}, {"report.html", "the report as a page for a browser"},
		{filepath.Join("repository", filepath.Base(model)), "the model in a Triton model repository"},
		{"helm", "a Helm chart"}, {"profile.yaml", "what was searched"},
	} {
		path := filepath.Join(dir, f.name)
		if _, err := os.Stat(path); err == nil {
			list = append(list, path+": "+f.about)
		}
	}
	return list
}

type explainOut struct {
	Sections []section `json:"sections"`
}

type section struct {
	Title string     `json:"title"`
	Lines []string   `json:"lines,omitempty"`
	Heads []string   `json:"heads,omitempty" jsonschema:"titles of the table's columns"`
	Rows  [][]string `json:"rows,omitempty"`
	Notes []string   `json:"notes,omitempty"`
}

// explain implements the tool explain.
func (s *server) explain(_ context.Context, _ *sdk.CallToolRequest, in folderIn) (*sdk.CallToolResult, explainOut, error) {
	dir, err := s.roots.Folder(in.Folder)
	if err != nil {
		return nil, explainOut{}, err
	}
	a, err := s.analysisIn(dir)
	if err != nil {
		return nil, explainOut{}, err
	}
	r, err := analyze.RankFile(a)
	if err != nil {
		return nil, explainOut{}, err
	}
	var b strings.Builder
	if err := reporttext.WriteExplanation(&b, r); err != nil {
		return nil, explainOut{}, err
	}
	out := explainOut{Sections: []section{}}
	for _, one := range figures.Explanation(r) {
		out.Sections = append(out.Sections, section{one.Title, one.Lines, figures.Titles(one.Heads), one.Cells, one.Notes})
	}
	return text(b.String()), out, nil
}

type compareIn struct {
	Runs   []string `json:"runs" jsonschema:"two runs or more, the first one against each of the others: output folders or files"`
	Spread *float64 `json:"spread,omitempty" jsonschema:"standard deviation of a figure between two runs of one server, in percent; default tuner's own"`
}

// compare implements the tool compare. The structured result is that of `tuner compare --format
// json`, without the configurations of the runs.
func (s *server) compare(ctx context.Context, _ *sdk.CallToolRequest, in compareIn) (*sdk.CallToolResult, map[string]any, error) {
	if len(in.Runs) < 2 || len(in.Runs) > mostRuns {
		return nil, nil, exit.Usagef("runs: %d given; give 2 to %d", len(in.Runs), mostRuns)
	}
	args := []string{"compare"}
	if in.Spread != nil {
		args = append(args, fmt.Sprintf("--spread=%g", *in.Spread))
	}
	var paths []string
	for _, run := range in.Runs {
		path, err := s.roots.Folder(run)
		if err != nil {
			return nil, nil, err
		}
		paths = append(paths, path)
	}
	plain, err := s.verb(ctx, append(append(args, "--format=text", "--"), paths...)...)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := s.verb(ctx, append(append(args, "--format=json", "--"), paths...)...)
	if err != nil {
		return nil, nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(encoded, &out); err != nil {
		return nil, nil, fmt.Errorf("cannot read the comparison: %w", err)
	}
	if runs, is := out["runs"].([]any); is {
		for _, run := range runs {
			if fields, is := run.(map[string]any); is {
				delete(fields, "configurations")
			}
		}
	}
	if text, err := json.Marshal(out); err != nil || len(text) > mostStructured {
		out = map[string]any{"shortened": "the comparison has more than an assistant can take; see the text"}
	}
	return text(string(plain)), out, nil
}

// mostStructured is the largest structured result, in bytes.
const mostStructured = 256 << 10

type exportIn struct {
	Target      string   `json:"target" jsonschema:"what to write"`
	Folders     []string `json:"folders" jsonschema:"output folders of campaigns; several become one server with several models"`
	Output      string   `json:"output" jsonschema:"folder to write; it must not exist"`
	Name        string   `json:"name,omitempty" jsonschema:"name of the deployment, a DNS label; default the model's name"`
	Image       string   `json:"image,omitempty" jsonschema:"Triton's image with its tag; default tuner's own"`
	Replicas    int      `json:"replicas,omitempty" jsonschema:"servers; with an autoscaler the least number; default 1"`
	MaxReplicas int      `json:"max_replicas,omitempty" jsonschema:"most servers; without an autoscaler if not above replicas"`
	Storage     string   `json:"storage,omitempty" jsonschema:"address of the repository for a cluster: pvc://CLAIM/PATH, s3://BUCKET/PATH; default a claim of its own"`
}

// export implements the tool export. Its structured result is that of `tuner export --format json`.
func (s *server) export(ctx context.Context, _ *sdk.CallToolRequest, in exportIn) (*sdk.CallToolResult, map[string]any, error) {
	output, err := s.roots.Find(in.Output)
	if err != nil {
		return nil, nil, err
	}
	args := []string{"export", "--format=json", "--output-folder=" + output}
	for _, folder := range in.Folders {
		path, err := s.roots.Folder(folder)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, "--input="+path)
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	args = withFlags(args, flag{"name", in.Name}, flag{"image", in.Image}, flag{"replicas", number(in.Replicas)},
		flag{"max-replicas", number(in.MaxReplicas)}, flag{"storage", in.Storage})
	encoded, err := s.verb(ctx, append(args, "--", in.Target)...)
	if err != nil {
		return nil, nil, err
	}
	var summary export.Summary
	out := map[string]any{}
	if err := errors.Join(json.Unmarshal(encoded, &summary), json.Unmarshal(encoded, &out)); err != nil {
		return nil, nil, fmt.Errorf("cannot read the summary of the export: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "wrote to %s:\n  %s\nnext, in that folder (README.md there says more):\n  %s\n",
		output, strings.Join(summary.Files, "\n  "), strings.Join(summary.Commands, "\n  "))
	return text(b.String()), out, nil
}
