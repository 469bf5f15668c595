package main

import (
	"context"
	_ "embed"
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

// campaign is what differs between the campaigns' profiles.
type campaign struct {
	Name     string // of its folder below the output folder
	Strategy string
	Budget   time.Duration // 0: none
	Seed     int
	Server   string // that the finalists are confirmed on; "" tuner's own engine
}

// answer is a configuration that somebody chose, and the load that it is meant for.
type answer struct {
	by          string
	text        string // in words
	repository  string // folder that a server of models serves it from
	concurrency int
	throughput  float64 // infer/s, by the report of whoever chose it
	p99         float64 // s, likewise
	took        time.Duration
	measured    int // trials, or measurements
}

// tune carries out a campaign of ours, or what is left of it, and takes its answer from what `tuner analyze` wrote.
func (b *bench) tune(ctx context.Context, c campaign) (answer, error) {
	folder := filepath.Join(b.output, c.Name)
	profile := folder + ".profile.yaml"
	text, err := b.profile(c, folder)
	if err != nil {
		return answer{}, err
	}
	if err := os.WriteFile(profile, []byte(text), 0o644); err != nil {
		return answer{}, fmt.Errorf("cannot write the profile: %w", err)
	}
	fmt.Fprintf(b.messages, "campaign %s\n", c.Name)
	for _, args := range [][]string{{"profile", "-f", profile, "--quiet"}, {"analyze", "--input", folder}} {
		if err := b.program(ctx, b.tuner, args...); err != nil {
			return answer{}, err
		}
	}
	campaign, err := analyze.Replay(folder)
	if err != nil {
		return answer{}, err
	}
	goal := campaign.Profile.Goal
	result, err := analyze.Analyze(campaign, analyze.Options{Goal: &goal})
	if err != nil {
		return answer{}, err
	}
	winner, ok := result.Winner()
	if !ok {
		return answer{}, fmt.Errorf("no configuration satisfies the constraints of %s", profile)
	}
	return answer{
		by: "tuner, " + c.Name, text: winner.Candidate.Describe(), repository: filepath.Join(folder, "repository"),
		concurrency: winner.Best.Load.Concurrency, throughput: winner.Best.Values[measure.Throughput].Value,
		p99: winner.Best.Values[measure.LatencyP99].Value, took: result.Account.Elapsed, measured: result.Trials,
	}, nil
}

// profile is the text of a campaign's profile.
func (b *bench) profile(c campaign, folder string) (string, error) {
	var text strings.Builder
	values := struct {
		campaign
		Models, Sentences, Output string
	}{c, b.models, b.sentences, folder}
	if err := template.Must(template.New("profile.yaml").Parse(profileText)).Execute(&text, values); err != nil {
		return "", fmt.Errorf("cannot make the profile: %w", err)
	}
	return text.String(), nil
}

// program runs one of the programs to its end. What it printed is in the error.
func (b *bench) program(ctx context.Context, name string, args ...string) error {
	if text, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w; its output:\n%s", filepath.Base(name), strings.Join(args, " "), err, text)
	}
	return nil
}
