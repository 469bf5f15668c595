package cli

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tuner/hostinfo"
	"tuner/ortlib"
	"tuner/ortlib/wheel"
	"tuner/provider/probe"
)

// diagnosis is what doctor finds; its JSON form is for programs.
type diagnosis struct {
	Fingerprint string        `json:"fingerprint"`
	Host        hostinfo.Host `json:"host"`
	Noise       *noise        `json:"noise,omitempty"` // absent where the system doesn't tell
	Pip         string        `json:"pip,omitempty"`   // what is wrong with python3 and pip; "": nothing
	Selected    string        `json:"selected"`        // the build that is used when none is named; "": none
	Runtimes    []runtimeFact `json:"runtimes"`
	Installable []string      `json:"installable"` // builds that are not installed
}

// noise is the work of others while doctor did nothing, as shares of the machine's CPU time.
type noise struct {
	Busy  float64 `json:"busy"`
	Steal float64 `json:"steal"`
}

// runtimeFact is an ONNX Runtime build and what each of its providers did.
type runtimeFact struct {
	Name      string         `json:"name"`
	Library   string         `json:"library"`
	Version   string         `json:"version"` // as the library itself says
	Error     string         `json:"error,omitempty"`
	Providers []providerFact `json:"providers"`
}

// providerFact says whether a provider created a session; a tiny model was run, too.
type providerFact struct {
	Name         string  `json:"name"`
	Works        bool    `json:"works"`
	Milliseconds float64 `json:"milliseconds,omitempty"`
	Error        string  `json:"error,omitempty"`
	Refused      string  `json:"refused,omitempty"` // the model that failed where a tiny one runs: the model is at fault
}

func newDoctor(con console) *cobra.Command {
	var output, model string
	cmd := verb(&cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine offers, and the remedy for each lack",
		Long: `Shows what decides how a model can be served here: cores and quota, CPU features, memory, NUMA, GPUs, how much other work
disturbs measurements, the ONNX Runtime builds, and for each of their execution providers whether a session was really
created (in a process of its own, since a broken provider may crash).`,
		Example: "  tuner doctor\n  tuner doctor --model model.onnx\n  tuner doctor --output json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutputFormat(output); err != nil {
				return err
			}
			if _, err := os.Stat(model); model != "" && err != nil {
				return usageErrorf("cannot read the model: %v", err)
			}
			d, err := diagnose(cmd.Context(), model)
			if err != nil {
				return interruptedOr(cmd.Context(), err)
			}
			if output == "json" {
				return writeJSON(con.out, d)
			}
			return printDiagnosis(con.out, d)
		},
	})
	cmd.Flags().StringVar(&output, "output", "text", "text or json")
	cmd.Flags().StringVar(&model, "model", "", "ONNX file to try the providers on, in the place of a tiny model")
	return cmd
}

func diagnose(ctx context.Context, model string) (diagnosis, error) {
	prober, err := probe.New()
	if err != nil {
		return diagnosis{}, err
	}
	host := hostinfo.Read(ctx)
	d := diagnosis{Fingerprint: host.Fingerprint(), Host: host, Noise: measureNoise(ctx), Runtimes: []runtimeFact{}, Installable: []string{}}
	if err := wheel.Check(ctx); err != nil {
		d.Pip = err.Error()
	}
	builds, err := knownBuilds()
	if err != nil {
		return diagnosis{}, err
	}
	for _, known := range builds {
		if known.Selected {
			d.Selected = known.Name
		}
		switch {
		case known.Error != "":
			d.Runtimes = append(d.Runtimes, runtimeFact{Name: known.Name, Library: known.Library, Error: known.Error, Providers: []providerFact{}})
		case known.Installed:
			d.Runtimes = append(d.Runtimes, tryRuntime(ctx, prober, known.build, model))
		default:
			d.Installable = append(d.Installable, known.Name)
		}
	}
	return d, ctx.Err()
}

// noiseTime is long enough for the 10 ms steps of CPU times to show some percent.
const noiseTime = time.Second

// measureNoise measures the work of others on the processors that this process may use, by doing nothing for a moment.
func measureNoise(ctx context.Context) *noise {
	allowed := hostinfo.ReadAllowance()
	before := allowed.Snapshot()
	select {
	case <-time.After(noiseTime):
	case <-ctx.Done():
		return nil
	}
	usage := allowed.Snapshot().Since(before)
	total := float64(usage.Total())
	if total <= 0 { // the system does not tell
		return nil
	}
	return &noise{Busy: float64(usage.Busy) / total, Steal: float64(usage.Steal) / total}
}

// tryRuntime opens a build and tries each of its providers on a model ("": a tiny one).
func tryRuntime(ctx context.Context, p probe.Prober, build ortlib.Build, model string) runtimeFact {
	fact := runtimeFact{Name: build.Name(), Library: build.Library, Providers: []providerFact{}}
	opened := p.Try(ctx, build, "", "")
	fact.Version, fact.Error = opened.Version, opened.Error
	for _, name := range opened.Providers {
		answer := p.Try(ctx, build, name, model)
		tried := providerFact{Name: name, Works: answer.Error == "", Milliseconds: answer.Milliseconds, Error: answer.Reason()}
		if !tried.Works && model != "" && p.Try(ctx, build, name, "").Error == "" {
			tried.Refused = model
		}
		fact.Providers = append(fact.Providers, tried)
	}
	return fact
}
