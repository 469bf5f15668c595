package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"tuner/analyze"
	"tuner/measure"
)

//go:embed profile.yaml
var profileText string

// subject is a model on which campaigns run.
type subject struct {
	Name    string   // name in the servers
	File    string   // in the folder of models
	Shapes  []string // NAME:SIZES of the inputs with symbolic sizes, without the batch dimension
	Batches bool     // it has a batch dimension
	profile string   // template of its campaigns' profiles
	config  []byte   // config.pbtxt from which Model Analyzer starts
}

func minilm() subject {
	return subject{
		Name: "minilm", File: "minilm.onnx", Shapes: []string{"input_ids:32", "attention_mask:32", "token_type_ids:32"}, Batches: true,
		profile: profileText, config: minilmConfig,
	}
}

// campaign holds what differs between the campaigns' profiles.
type campaign struct {
	Model    subject
	Name     string // of its folder below the output folder
	Strategy string
	Budget   time.Duration // 0: none
	Seed     int
	Limit    time.Duration // on p99
	Runner   string        // engine for the search; "" tuner's own engine
	Server   string        // server that confirms the finalists; "" tuner's own engine
}

// usualLimit is the limit on p99 of the parts that have no limit of their own.
const usualLimit = 30 * time.Millisecond

// errNone is the error of a campaign without an answer.
var errNone = errors.New("no configuration satisfies the constraints")

// answer is a chosen configuration with the load for which it is meant.
type answer struct {
	by          string
	text        string // description
	model       subject
	key         string // identity of the configuration, for our answers only
	repository  string // folder from which a server can serve it
	concurrency int
	throughput  float64       // infer/s, from the report of the program that chose it
	p99         float64       // s, from the same report
	wall        time.Duration // of the programs that found it; 0 if they resumed existing work
	campaign    time.Duration // duration of our trials by the campaign's own report, which its budget bounds
	beyond      bool          // exceeds a limit, by the same report
	measured    int           // trials, or measurements
}

// tune runs one of our campaigns, or the rest of it. It reads the answer from the output of `tuner
// analyze`.
func (b *bench) tune(ctx context.Context, c campaign) (answer, error) {
	result, err := b.carryOut(ctx, c)
	if err != nil {
		return answer{}, err
	}
	winner, ok := result.Winner()
	if !ok {
		return answer{}, fmt.Errorf("campaign %s: %w", c.Name, errNone)
	}
	return answer{
		by: "tuner, " + c.Name, model: c.Model, text: winner.Candidate.Describe(), key: winner.Candidate.Key(), repository: filepath.Join(b.folder(c), "repository"),
		concurrency: winner.Best.Load.Concurrency, throughput: winner.Best.Values[measure.Throughput].Value,
		p99: winner.Best.Values[measure.LatencyP99].Value, campaign: result.Account.Elapsed, measured: result.Trials,
	}, nil
}

// folder returns a campaign's output folder.
func (b *bench) folder(c campaign) string { return filepath.Join(b.output, c.Name) }

// cache returns the folder in which tuner keeps its variants. It has no other program's variants.
func (b *bench) cache() string { return filepath.Join(b.output, "cache") }

// infeasible is tuner's exit code if no configuration satisfies the constraints.
const infeasible = 5

// carryOut runs one of our campaigns, or the rest of it, and analyzes it.
func (b *bench) carryOut(ctx context.Context, c campaign) (analyze.Result, error) {
	folder := b.folder(c)
	profile := folder + ".profile.yaml"
	text, err := b.profile(c, folder)
	if err != nil {
		return analyze.Result{}, err
	}
	if err := os.WriteFile(profile, []byte(text), 0o644); err != nil {
		return analyze.Result{}, fmt.Errorf("cannot write the profile: %w", err)
	}
	fmt.Fprintf(b.messages, "campaign %s\n", c.Name)
	for _, args := range [][]string{{"profile", "-f", profile, "--quiet"}, {"analyze", "--input", folder}} {
		var exit *exec.ExitError
		err := b.program(ctx, []string{"TUNER_CACHE=" + b.cache()}, b.tuner, args...)
		if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == infeasible) {
			return analyze.Result{}, err
		}
	}
	campaign, err := analyze.Replay(folder)
	if err != nil {
		return analyze.Result{}, err
	}
	goal := campaign.Profile.Goal
	return analyze.Analyze(campaign, analyze.Options{Goal: &goal})
}

// profile returns the text of a campaign's profile.
func (b *bench) profile(c campaign, folder string) (string, error) {
	var text strings.Builder
	values := struct {
		campaign
		Models, Sentences, Output string
	}{c, b.models, b.sentences, folder}
	if err := template.Must(template.New("profile.yaml").Parse(c.Model.profile)).Execute(&text, values); err != nil {
		return "", fmt.Errorf("cannot make the profile: %w", err)
	}
	return text.String(), nil
}

// program runs a program to its end, with additional environment variables. An error includes its
// output.
func (b *bench) program(ctx context.Context, environment []string, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), environment...)
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w; its output:\n%s", filepath.Base(name), strings.Join(args, " "), err, text)
	}
	return nil
}
