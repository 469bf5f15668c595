package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tuner/analyze"
	"tuner/export"
	"tuner/export/verify"
	"tuner/hostinfo"
	"tuner/modelconfig"
	"tuner/onnx"
	"tuner/ortlib"
	"tuner/precision"
	"tuner/profile"
	"tuner/spec"
)

// The measurement of throughput: some seconds, as the finals of a campaign have.
const (
	verifyWindows = 3
	verifyWindow  = time.Second
)

// exportVerifyOptions are the flags of `tuner export verify`.
type exportVerifyOptions struct {
	input      string
	ortLibrary string
	output     string
}

func newExportVerify(con console) *cobra.Command {
	var o exportVerifyOptions
	cmd := verb(&cobra.Command{
		Use:   "verify DIR",
		Short: "Serve an export here and compare it with its report",
		Long: `Serves the model repository of an export with the bundled engine: health, metadata, configuration and an inference of every model, its
throughput at the reported load (more than 10 % below what was reported is a failure; where another machine, server or ONNX Runtime was
measured it is told and not judged), and the accuracy of models in other precisions, against the original, on the campaign's own data.`,
		Example: "  tuner export verify deploy\n  tuner export verify deploy --input out/minilm",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return runExportVerify(cmd.Context(), con, args[0], o) },
	})
	cmd.Flags().StringVar(&o.input, "input", "", "the campaign's output folder, for the accuracy (default: as export.json names it, from here)")
	cmd.Flags().StringVar(&o.ortLibrary, "ort-library", "", "ONNX Runtime library, or flavour[@version] of an installed one, for all models "+
		"(default: the build that a model was tuned on, where it is installed; then $TUNER_ORT_LIBRARY, then the installed cpu build)")
	cmd.Flags().StringVar(&o.output, "output", "text", "on stdout: text or json")
	return cmd
}

func runExportVerify(ctx context.Context, con console, dir string, o exportVerifyOptions) error {
	if err := checkOutputFormat(o.output); err != nil {
		return err
	}
	manifest, err := export.ReadManifest(dir) // before ONNX Runtime is looked for
	if err != nil {
		return deployError(err)
	}
	builds, err := exportBuilds(ctx, o.ortLibrary, manifest.Models)
	if err != nil {
		return interruptedOr(ctx, err)
	}
	options, err := bundled(con)
	if err != nil {
		return err
	}
	options.Epoch = time.Now()
	judge, host := accuracyJudge{con, o.input, builds}, hostinfo.Read(ctx)
	checks, err := verify.Verify(ctx, dir, verify.Options{
		Runner: options, Build: builds.serving, Fingerprint: host.Fingerprint(), GPUs: len(host.GPUs), Windows: verifyWindows, Window: verifyWindow,
		Accuracy: judge.check,
	})
	if err != nil {
		return interruptedOr(ctx, deployError(err))
	}
	if err := printChecks(con.out, o.output, checks); err != nil {
		return err
	}
	failed := 0
	for _, c := range checks {
		if c.Status == verify.Failed {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%s", countText(failed, "check failed", "checks failed"))
	}
	return nil
}

// servingBuilds are the ONNX Runtime builds here, by the names of those that models were tuned on.
type servingBuilds map[string]ortlib.Build

// exportBuilds finds and opens the build of each model: what the user names, else the one that it was tuned on where that is installed, else the
// usual one.
func exportBuilds(ctx context.Context, named string, models []export.ManifestModel) (servingBuilds, error) {
	builds := servingBuilds{}
	for _, m := range models {
		if _, ok := builds[m.Runtime]; ok {
			continue
		}
		build, err := exportBuild(named, m.Runtime)
		if err != nil {
			return nil, withExit(exitUsage, err)
		}
		if builds[m.Runtime], err = openBuild(ctx, build); err != nil {
			return nil, err
		}
	}
	return builds, nil
}

// exportBuild looks for the tuned build among those that are installed alone: export.json must not name a file that is then run.
func exportBuild(named, tuned string) (ortlib.Build, error) {
	if named != "" || tuned == "" {
		return ortlib.Resolve(named)
	}
	store, err := ortlib.UserStore()
	if err != nil {
		return ortlib.Build{}, err
	}
	if build, err := store.Find(tuned); err == nil {
		return build, nil
	}
	return ortlib.Resolve("")
}

func (b servingBuilds) serving(m export.ManifestModel) verify.Build {
	return verify.Build{Name: b[m.Runtime].Name(), Library: b[m.Runtime].Library}
}

func printChecks(out io.Writer, format string, checks []verify.Check) error {
	if format == "json" {
		return writeJSON(out, map[string]any{"checks": checks})
	}
	var b strings.Builder
	for _, c := range checks {
		subject := c.Name
		if c.Model != "" {
			subject = c.Model + ": " + c.Name
		}
		fmt.Fprintf(&b, "%-7s %s: %s\n", c.Status, subject, c.Text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// accuracyJudge compares exported models with the originals of their campaigns.
type accuracyJudge struct {
	con    console
	input  string // the campaign's folder, in place of the manifest's
	builds servingBuilds
}

// sameFigure is by how much a cosine may differ from the reported one, on the same data: other builds round otherwise.
const sameFigure = 1e-3

// check is verify.Accuracy.
func (j accuracyJudge) check(ctx context.Context, m export.ManifestModel, file string) (verify.Status, string, error) {
	exported, err := onnx.Read(file)
	if err != nil {
		return verify.Failed, err.Error(), nil
	}
	digest, err := exported.Digest()
	switch {
	case err != nil:
		return "", "", err
	case digest != m.SHA256:
		return verify.Failed, fmt.Sprintf("the model is not the one that was measured: its digest is %s, and was %s", digest, m.SHA256), nil
	case m.Cosine == nil && m.Precision == spec.PrecisionOriginal:
		return verify.Passed, "the model is the one that was measured, in its original precision", nil
	case m.Cosine == nil:
		return verify.Skipped, "the campaign compared no outputs with the original's", nil
	}
	if j.input != "" {
		m.Input = j.input
	}
	campaign, err := analyze.Replay(m.Input)
	if errors.Is(err, fs.ErrNotExist) {
		return verify.Skipped, fmt.Sprintf("no campaign in %q to compare with: name its folder with --input", m.Input), nil
	}
	if err != nil {
		return "", "", withExit(exitUsage, err)
	}
	return j.compare(ctx, m, campaign, exported)
}

// compare runs the original and the exported model on the campaign's data.
func (j accuracyJudge) compare(ctx context.Context, m export.ManifestModel, c analyze.Campaign, exported *onnx.Model) (verify.Status, string, error) {
	source := c.Header.Models[0]
	original, err := onnx.Read(source.Path)
	if err != nil {
		return verify.Skipped, fmt.Sprintf("the original is gone: %v", err), nil
	}
	if digest, err := original.Digest(); err != nil || digest != source.SHA256 {
		return verify.Skipped, fmt.Sprintf("the original %q changed since the campaign", source.Path), err
	}
	base, err := modelconfig.Parse("base_config of the journal", []byte(c.Header.BaseConfig))
	if err != nil {
		return "", "", err
	}
	data, calibration, err := profile.Data(c.Profile, profile.Subject{Name: m.Name, Model: original, Config: base})
	if err != nil {
		return "", "", inputError(err)
	}
	cache, err := os.MkdirTemp("", "tuner-verify-*") // what the campaign found out is not asked
	if err != nil {
		return "", "", fmt.Errorf("cannot make a folder for the comparison: %w", err)
	}
	defer os.RemoveAll(cache)
	build := j.builds[m.Runtime]
	opener, err := newOpener(j.con, func(string) ortlib.Build { return build })
	if err != nil {
		return "", "", err
	}
	maker, err := precision.NewMaker(original, opener, precision.Options{
		Data: data, Calibration: calibration, Limit: c.Profile.Accuracy.Limit, MaxKept: c.Profile.Accuracy.MaxKept, Cache: cache, Tool: build.Name(), KeepIO: true,
	})
	if err != nil {
		return "", "", sourceError(err)
	}
	v, err := maker.Check(ctx, m.Precision, exported, []string{m.Provider})
	if err != nil {
		return "", "", sourceError(err)
	}
	if reason := v.Rejected[m.Provider]; reason != "" {
		return verify.Failed, reason, nil
	}
	return sameAccuracy(v, m.Provider, *m.Cosine)
}

// sameAccuracy compares the lowest mean cosine of the outputs with the reported one.
func sameAccuracy(v precision.Variant, provider string, reported float64) (verify.Status, string, error) {
	report, ok := v.Accuracy[provider]
	if !ok {
		return verify.Skipped, "the model on this provider is what all others are compared with", nil
	}
	now := math.Inf(1)
	for _, output := range report.Outputs {
		if !math.IsNaN(output.CosineMean) {
			now = min(now, output.CosineMean)
		}
	}
	text := fmt.Sprintf("cosine %.6g with the original on %s; reported %.6g", now, countText(report.Rows, "row", "rows"), reported)
	if math.Abs(now-reported) > sameFigure {
		return verify.Failed, text, nil
	}
	return verify.Passed, text, nil
}
