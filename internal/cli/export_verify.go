package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tuner/export"
	"tuner/export/verify"
	"tuner/internal/cli/arguments"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/model/precision"
	"tuner/model/precision/places"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
	"tuner/profile/preparation"
	"tuner/runner/target"
)

// The measurement of throughput takes some seconds, like the finals of a campaign.
const (
	verifyWindows = 3
	verifyWindow  = time.Second
)

// exportVerifyOptions are the flags of `tuner export verify`.
type exportVerifyOptions struct {
	input      string
	ortLibrary string
	libraries  addon.Libraries
	output     string
}

func newExportVerify(con console) *cobra.Command {
	var o exportVerifyOptions
	cmd := verb(&cobra.Command{
		Use:   "verify DIR",
		Short: "Serve an export here and compare it with its report",
		Long: `Serves the model repository of an export with the bundled engine. It checks health, metadata, configuration and an inference of every
model. It measures the throughput at the reported load: more than 10 % below the report is a failure, and so is a missed limit of the
campaign. Models that were measured together are measured together again. The requests of a pipeline go to the pipeline. Where another machine, server or ONNX Runtime was measured,
figures are shown and not judged. It compares models in other precisions with the original, on the campaign's own data.`,
		Example: "  tuner export verify deploy\n  tuner export verify deploy --input out/minilm",
		Args:    arguments.Usage(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return runExportVerify(cmd.Context(), con, args[0], o) },
	})
	cmd.Flags().StringVar(&o.input, "input", "", "the campaign's output folder, for its rows and the accuracy (default: the folder that export.json names)")
	cmd.Flags().StringVar(&o.ortLibrary, "ort-library", "", "ONNX Runtime library, or flavour[@version] of an installed one, for all models "+
		"(default: the build on which a model was tuned, where it is installed; then $TUNER_ORT_LIBRARY, then the installed cpu build)")
	addon.AddFlags(cmd.Flags(), &o.libraries)
	terminal.AddFormat(cmd.Flags(), &o.output, "`format` on stdout: text or json")
	return cmd
}

func runExportVerify(ctx context.Context, con console, dir string, o exportVerifyOptions) error {
	if err := arguments.CheckFormat(o.output); err != nil {
		return err
	}
	libraries, err := o.libraries.Resolve(addon.InFlags())
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	manifest, err := export.ReadManifest(dir) // before the search for ONNX Runtime
	if err != nil {
		return exit.OfFiles(err)
	}
	builds, err := exportBuilds(ctx, o.ortLibrary, manifest.Models)
	if err != nil {
		return exit.OrInterrupted(ctx, err)
	}
	options, err := target.Engine("", libraries, con.err)
	if err != nil {
		return err
	}
	options.Epoch = time.Now()
	host := hostinfo.Read(ctx)
	judge := verify.Judge{Input: o.input, Libraries: libraries, Open: func(m export.ManifestModel) (precision.Opener, string, error) {
		build := builds[m.Runtime]
		opener, err := places.Builds(func(string) ortlib.Build { return build }).Opener(libraries, con.err)
		return opener, build.Name(), err
	}}
	checks, err := verify.Verify(ctx, dir, verify.Options{
		Runner: options, Build: builds.serving, Fingerprint: host.Fingerprint(), GPUs: len(host.GPUs), Windows: verifyWindows, Window: verifyWindow,
		Accuracy: judge.Check, Input: o.input, Libraries: libraries,
	})
	if err != nil {
		return exit.OrInterrupted(ctx, exit.OfFiles(err))
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
		return fmt.Errorf("%s failed", words.Count(failed, "check"))
	}
	return nil
}

// servingBuilds are the ONNX Runtime builds here, by the names of the builds on which models were
// tuned.
type servingBuilds map[string]ortlib.Build

// exportBuilds finds and opens the build of each model.
func exportBuilds(ctx context.Context, named string, models []export.ManifestModel) (servingBuilds, error) {
	builds := servingBuilds{}
	for _, m := range models {
		if _, ok := builds[m.Runtime]; ok {
			continue
		}
		build, err := ortlib.ResolveTuned(named, m.Runtime)
		if err != nil {
			return nil, exit.With(exit.Usage, err)
		}
		if builds[m.Runtime], err = preparation.OpenBuild(ctx, build); err != nil {
			return nil, err
		}
	}
	return builds, nil
}

func (b servingBuilds) serving(m export.ManifestModel) verify.Build {
	return verify.Build{Name: b[m.Runtime].Name(), Library: b[m.Runtime].Library}
}

func printChecks(out io.Writer, format string, checks []verify.Check) error {
	if format == "json" {
		return writeJSON(out, verify.Summary{Checks: checks})
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
