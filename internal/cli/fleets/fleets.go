// Package fleets is the verb `tuner fleet`: its commands with their flags, and what they print. Package
// fleet and those below it do the work.
package fleets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tuner/fleet"
	"tuner/fleet/objects"
	"tuner/internal/cli/arguments"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/terminal"
	"tuner/internal/words"
)

// Console is where the commands write, and the version of the program.
type Console struct {
	Out, Err io.Writer
	Version  string
}

// writeJSON writes a value as indented JSON.
func writeJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// New returns the command with all its own.
func New(con Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Find the machine type that serves each model at the lowest cost, on Kubernetes",
		Long: `Runs whole campaigns on several types of machines of a Kubernetes cluster, and compares the answers: type, configuration, cost.
fleet.yaml names models and machines (docs/reference/fleet.md). Kubernetes does what it is for: it places, retries and queues. There is no operator
and no daemon.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newFleetRun(con), newFleetPlan(con), newFleetManifests(con), newFleetStatus(con), newFleetCollect(con), newFleetAnalyze(con), newFleetConfirm(con), newFleetDelete(con), newFleetWorker(con))
	return cmd
}

// fleetFile adds the flag of the file that all these verbs read.
func fleetFile(cmd *cobra.Command, file *string) {
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(file, "file", "f", "fleet.yaml", "`fleet.yaml` (docs/reference/fleet.md)")
}

// readFleet reads a fleet.yaml and makes its plan.
func readFleet(file string) (fleet.Plan, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return fleet.Plan{}, exit.Usagef("cannot read the fleet %q: %v", file, durable.Cause(err))
	}
	f, err := fleet.Parse(filepath.Clean(file), text)
	if err != nil {
		return fleet.Plan{}, exit.With(exit.Usage, err)
	}
	p, err := fleet.NewPlan(f, os.ReadFile)
	return p, exit.With(exit.Usage, err)
}

// readPrinted is readFleet for a verb with a format of its output, which it checks first.
func readPrinted(file, format string) (fleet.Plan, error) {
	if err := arguments.CheckFormat(format); err != nil {
		return fleet.Plan{}, err
	}
	return readFleet(file)
}

func newFleetPlan(con Console) *cobra.Command {
	var file, format string
	cmd := &cobra.Command{
		Use:   "plan -f fleet.yaml",
		Short: "Say what a fleet would create, and what the tuning itself costs",
		Long: `Checks fleet.yaml and the profiles that it names. Says which pods would run on which machines, for how long, and at what price.
It asks no cluster and changes nothing.`,
		Example: "  tuner fleet plan -f fleet.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			p, err := readPrinted(file, format)
			if err != nil {
				return err
			}
			list, err := objects.Of(p, objects.Options{})
			if err != nil {
				return err
			}
			if format == "json" {
				return writeJSON(con.Out, newFleetForecast(p, list))
			}
			return printFleetPlan(con.Out, file, p, list)
		},
	}
	fleetFile(cmd, &file)
	terminal.AddFormat(cmd.Flags(), &format, "`format` on stdout: text or json")
	return cmd
}

// fleetForecast is the output of `tuner fleet plan --format json`.
type fleetForecast struct {
	Run      string             `json:"run"`
	Machines []fleetMachineCost `json:"machines"`
	Objects  []string           `json:"objects"` // KIND NAME, in the order of their creation
	// JournalBytes: about what the journals take in the cluster until the run is deleted
	JournalBytes int64 `json:"journal_bytes"`
}

type fleetMachineCost struct {
	Machine      string  `json:"machine"`
	Pods         int     `json:"pods"`
	LeastSeconds float64 `json:"least_seconds"` // machine time if nothing fails
	MostSeconds  float64 `json:"most_seconds"`  // machine time if every attempt fails at the end
	LeastPrice   float64 `json:"least_price,omitempty"`
	MostPrice    float64 `json:"most_price,omitempty"`
}

func newFleetForecast(p fleet.Plan, list []objects.Object) fleetForecast {
	f := fleetForecast{Run: p.Run, Machines: []fleetMachineCost{}, Objects: []string{}, JournalBytes: p.JournalBytes()}
	for _, c := range p.Costs() {
		f.Machines = append(f.Machines, fleetMachineCost{c.Machine, c.Pods, c.Least.Seconds(), c.Most.Seconds(), c.Price(c.Least), c.Price(c.Most)})
	}
	for _, o := range list {
		f.Objects = append(f.Objects, o.Kind+" "+o.Metadata.Name)
	}
	return f
}

func printFleetPlan(out io.Writer, file string, p fleet.Plan, list []objects.Object) error {
	var b strings.Builder
	f := p.Fleet
	fmt.Fprintf(&b, "run %s: %s of %s on %s, in namespace %s\n\n", p.Run, words.Count(totalPods(p), "campaign"), f.Budget, words.Count(len(f.Machines), "type")+" of machines", f.Cluster.Namespace)
	var rows [][]string
	least, most := 0.0, 0.0
	for i, c := range p.Costs() {
		m := f.Machines[i]
		price := "unknown"
		if c.Hourly > 0 {
			price = fmt.Sprintf("%.2f to %.2f", c.Price(c.Least), c.Price(c.Most))
			least, most = least+c.Price(c.Least), most+c.Price(c.Most)
		}
		rows = append(rows, []string{c.Machine, fmt.Sprint(c.Pods), podSize(m), fmt.Sprintf("%s to %s", c.Least, c.Most), price})
	}
	columns := []terminal.Column{{Title: "Machine"}, {Title: "Pods", Right: true}, {Title: "Each takes"}, {Title: "Machine time"}, {Title: "Costs", Right: true}}
	if err := terminal.WriteTable(&b, columns, rows); err != nil {
		return err
	}
	if least > 0 {
		fmt.Fprintf(&b, "\nThe tuning costs %.2f if nothing fails, and %.2f at most, when every attempt of every pod hangs until its deadline.\n", least, most)
	}
	fmt.Fprintf(&b, "\nThe journals take about %.1f MB in the cluster until `tuner fleet delete`.\n", float64(p.JournalBytes())/1e6)
	fmt.Fprintf(&b, "\nobjects:\n")
	for _, o := range list {
		fmt.Fprintf(&b, "  %s %s\n", o.Kind, o.Metadata.Name)
	}
	b.WriteString(exclusiveAdvice(f))
	fmt.Fprintf(&b, "next: tuner fleet run -f %s\n", words.ShellWord(file))
	_, err := io.WriteString(out, b.String())
	return err
}

func kubectlText(c fleet.Cluster) string {
	text := "kubectl"
	if c.Context != "" {
		text += " --context " + c.Context
	}
	return text
}

func totalPods(p fleet.Plan) int {
	n := 0
	for _, part := range p.Parts {
		n += len(part.Items)
	}
	return n
}

func podSize(m fleet.Machine) string {
	text := words.Count(m.CPUs, "core") + ", " + m.Memory
	if m.GPUs > 0 {
		text += ", " + words.Count(m.GPUs, "GPU")
	}
	return text
}

// exclusiveAdvice says what the administrator has to do so that nobody disturbs a pod.
func exclusiveAdvice(f fleet.Fleet) string {
	switch f.Cluster.Exclusive {
	case fleet.ExclusiveNode:
		var b strings.Builder
		b.WriteString("\nexclusive: node. No pod of this fleet shares a node with another one. Others can, unless the nodes are tainted and `tolerations:` has the taint:\n")
		for _, m := range f.Machines {
			var labels []string
			for _, key := range slices.Sorted(maps.Keys(m.Select)) {
				labels = append(labels, key+"="+m.Select[key])
			}
			fmt.Fprintf(&b, "  %s taint nodes -l %s tuning=exclusive:NoSchedule\n", kubectlText(f.Cluster), strings.Join(labels, ","))
		}
		return b.String()
	case fleet.ExclusiveCores:
		return "\nexclusive: cores. A pod without cores of its own ends with exit code 42 and the setting that the kubelet needs.\n"
	}
	return "\nexclusive: shared. Windows that others disturb are flagged, and have more doubt.\n"
}

func newFleetManifests(con Console) *cobra.Command {
	var file, dir string
	var o objects.Options
	cmd := &cobra.Command{
		Use:   "manifests -f fleet.yaml -o DIR",
		Short: "Write the Kubernetes objects of a fleet as files",
		Long: `Writes the objects of a fleet: an account that may only create ConfigMaps, the plan, and an Indexed Job for each type of machine.
'kubectl apply -f DIR' starts the fleet, and 'kubectl delete -f DIR' ends it. The command asks no cluster.`,
		Example: "  tuner fleet manifests -f fleet.yaml -o manifests",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if dir == "" {
				return exit.Usagef("no folder to write is given: use -o DIR")
			}
			p, err := readFleet(file)
			if err != nil {
				return err
			}
			return writeManifests(con, dir, p, o)
		},
	}
	fleetFile(cmd, &file)
	cmd.Flags().StringVarP(&dir, "output-folder", "o", "", "`folder` to write")
	cmd.Flags().BoolVar(&o.Harden, "harden", false, "add a policy of the cluster: a worker may create immutable records of its own item alone")
	return cmd
}

// writeManifests writes a file for the account and one for each type of machine.
func writeManifests(con Console, dir string, p fleet.Plan, o objects.Options) error {
	list, err := objects.Of(p, o)
	if err != nil {
		return err
	}
	files := map[string][]objects.Object{}
	for _, object := range list {
		name := "account.yaml"
		if m := object.Machine(); m != "" {
			name = "machine-" + m + ".yaml"
		}
		files[name] = append(files[name], object)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return exit.Usagef("cannot write to %q: %v", dir, durable.Cause(err))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var b bytes.Buffer
		comment := fmt.Sprintf("Run %s of %s, written by %s.", p.Run, p.Fleet.Path, con.Version)
		if err := objects.Write(&b, comment, files[name]...); err != nil {
			return err
		}
		if err := durable.WriteFile(filepath.Join(dir, name), durable.Bytes(b.Bytes())); err != nil {
			return exit.OfFiles(fmt.Errorf("cannot write %q: %w", filepath.Join(dir, name), err))
		}
	}
	_, err = fmt.Fprintf(con.Out, "run %s: wrote %s to %s\nnext:\n  %s apply -f %s\n", p.Run, words.Count(len(list), "object"), dir, kubectlText(p.Fleet.Cluster), words.ShellWord(dir))
	return err
}
