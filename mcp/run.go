package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/report/formats"
	"tuner/spec"
	"tuner/spec/draft"
	"tuner/spec/mixture"
)

// mostProfile is the largest size of a profile.yaml, in bytes. People write some KB.
const mostProfile = 1 << 20

type startIn struct {
	Model     string             `json:"model,omitempty" jsonschema:"path of an ONNX file or of a Triton model folder"`
	Profile   string             `json:"profile,omitempty" jsonschema:"path of a profile.yaml, in place of a model and of all other arguments"`
	Output    string             `json:"output,omitempty" jsonschema:"folder to write to; default out/NAME below the first open folder"`
	Budget    string             `json:"budget,omitempty" jsonschema:"time for the search with its unit, such as 5m; default 10m"`
	P99       string             `json:"p99,omitempty" jsonschema:"limit of the p99 latency with its unit, such as 30ms; default none"`
	Until     string             `json:"until,omitempty" jsonschema:"end before the budget when nothing else is likely to be better by this share, such as 2%"`
	Mode      string             `json:"mode,omitempty" jsonschema:"what serving is for, in place of an objective: online (latency at the lowest load) or offline (throughput at the highest)"`
	Objective string             `json:"objective,omitempty" jsonschema:"metric that the search improves, such as throughput or latency_p99; default throughput"`
	Precision []string           `json:"precision,omitempty" jsonschema:"precisions to try; fp32 is the model as it is; default those that suit the model"`
	Accuracy  string             `json:"accuracy,omitempty" jsonschema:"least mean cosine of other precisions' outputs with the original's; default 0.99"`
	Shape     map[string][]int64 `json:"shape,omitempty" jsonschema:"sizes of inputs with open dimensions in a request, without the batch dimension"`
	Mix       string             `json:"mix,omitempty" jsonschema:"sizes of a dimension with weights, such as sequence=16:6,64:3,256:1"`
	Data      string             `json:"data,omitempty" jsonschema:"path of rows from which requests are drawn: .npz, .npy, a folder of NAME.npy, or perf_analyzer's JSON; default random values"`
}

// start implements the tool start_campaign.
func (s *server) start(ctx context.Context, _ *sdk.CallToolRequest, in startIn) (*sdk.CallToolResult, statusOut, error) {
	args, analysis, budget, err := s.runArguments(in)
	if err != nil {
		return nil, statusOut{}, err
	}
	c, err := s.launch(analysis, budget, args)
	if err != nil {
		return nil, statusOut{}, err
	}
	s.wait(ctx, c, firstLook)
	if !c.isRunning() {
		if code, failure := c.outcome(); failure != nil && code != exit.Infeasible {
			return nil, statusOut{}, failure
		}
	}
	out := c.status()
	if !c.isRunning() { // an earlier run had done everything
		return text(out.text()), out, nil
	}
	limit := "until its profile's number of measurements"
	if budget > 0 {
		limit = "for " + words.Clock(budget) + " at most"
	}
	return text(fmt.Sprintf("%s began: it measures %s, and writes to %s\nThe machine should be idle until it ends: wait with campaign_status.\n", c.id, limit, analysis.Output)), out, nil
}

// runArguments makes the command line of `tuner run`, and returns the analysis of its campaign and the
// budget.
func (s *server) runArguments(in startIn) (args []string, a spec.Analyze, budget time.Duration, err error) {
	args = []string{"run", "--ui=plain"}
	for _, root := range s.roots {
		args = append(args, "--within="+root)
	}
	switch {
	case (in.Model == "") == (in.Profile == ""):
		return nil, a, 0, exit.Usagef("give either a model or a profile")
	case in.Profile != "":
		if !isAlone(in) {
			return nil, a, 0, exit.Usagef("profile contradicts the other arguments: the file says them; edit %s", in.Profile)
		}
		p, a, err := s.profile(in.Profile)
		return append(args, "--file="+p.Path), a, p.Search.Budget.Time, err
	}
	model, err := s.model(in.Model)
	if err != nil {
		return nil, a, 0, err
	}
	output, err := s.roots.Folder(cmp.Or(in.Output, filepath.Join("out", draft.NewStarter(model).Name)))
	if err != nil {
		return nil, a, 0, err
	}
	if err := s.checkFiles(in); err != nil {
		return nil, a, 0, err
	}
	if a, err = s.analysis(ownProfile(output)); err != nil {
		return nil, a, 0, err
	}
	budget = 10 * time.Minute
	if asked, err := time.ParseDuration(in.Budget); err == nil { // `tuner run` reports mistakes
		budget = asked
	}
	args = withFlags(args, flag{"output-folder", output}, flag{"budget", in.Budget}, flag{"p99", in.P99}, flag{"until", in.Until},
		flag{"mode", in.Mode}, flag{"objective", in.Objective}, flag{"precision", strings.Join(in.Precision, ",")},
		flag{"accuracy", in.Accuracy}, flag{"mix", in.Mix}, flag{"data", in.Data})
	for _, input := range slices.Sorted(maps.Keys(in.Shape)) {
		sizes := strings.Trim(strings.ReplaceAll(fmt.Sprint(in.Shape[input]), " ", ","), "[]")
		args = append(args, "--shape="+input+":"+sizes)
	}
	return append(args, "--", model), a, budget, nil
}

// isAlone reports whether a profile is the only argument.
func isAlone(in startIn) bool {
	in.Profile = ""
	return in.Model+in.Output+in.Budget+in.P99+in.Until+in.Mode+in.Objective+in.Accuracy+in.Mix+in.Data == "" && len(in.Precision)+len(in.Shape) == 0
}

// checkFiles checks the files beside the model that the arguments name.
func (s *server) checkFiles(in startIn) error {
	if in.Data != "" {
		if _, err := s.roots.Folder(in.Data); err != nil {
			return err
		}
	}
	if in.Mix == "" {
		return nil
	}
	m, err := mixture.Parse(in.Mix)
	if err == nil && m.Histogram != "" {
		_, err = s.roots.Folder(m.Histogram)
	}
	return err
}

// profile reads and checks a profile.yaml and the analyze.yaml beside it. The process that runs it
// checks both again.
func (s *server) profile(named string) (spec.Profile, spec.Analyze, error) {
	fail := func(err error) (spec.Profile, spec.Analyze, error) { return spec.Profile{}, spec.Analyze{}, err }
	path, err := s.roots.Find(named)
	if err != nil {
		return fail(err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fail(exit.Usagef("cannot read the profile %q: %v", named, durable.Cause(err)))
	case !info.Mode().IsRegular() || info.Size() > mostProfile:
		return fail(exit.Usagef("cannot read the profile %q: it is no file of at most %d bytes", named, mostProfile))
	}
	p, err := spec.ReadProfile(path)
	if err != nil {
		return fail(err)
	}
	a, err := s.analysis(p)
	if err != nil {
		return fail(err)
	}
	return p, a, s.roots.CheckRun(p, a)
}

// analysis returns the analysis of a profile's campaign, as `tuner run` does.
func (s *server) analysis(p spec.Profile) (spec.Analyze, error) {
	beside := filepath.Join(filepath.Dir(p.Path), draft.AnalyzeName)
	if _, err := os.Lstat(beside); !errors.Is(err, fs.ErrNotExist) {
		if _, err := s.roots.Find(beside); err != nil {
			return spec.Analyze{}, err
		}
	}
	a, _, err := draft.AnalysisOf(p, formats.All().Words())
	return a, err
}

// analysisIn returns the analysis of the campaign in a folder. Of one of this session it is the one
// with which it runs.
func (s *server) analysisIn(dir string) (spec.Analyze, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.Backward(s.campaigns) {
		if c.analysis.Input == dir || c.analysis.Output == dir {
			return c.analysis, nil
		}
	}
	return s.analysis(ownProfile(dir))
}

// ownProfile is the profile that `tuner run` writes into a campaign's folder.
func ownProfile(dir string) spec.Profile {
	return spec.Profile{Path: filepath.Join(dir, draft.ProfileName), Output: dir}
}
