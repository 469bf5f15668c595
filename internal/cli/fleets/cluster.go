package fleets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tuner/analyze"
	"tuner/fleet"
	"tuner/fleet/cluster"
	"tuner/fleet/driver"
	"tuner/fleet/output"
	"tuner/fleet/record"
	"tuner/fleet/results"
	"tuner/fleet/worker"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/report/figures"
	"tuner/report/formats"
)

func newFleetWorker(con Console) *cobra.Command {
	o := worker.Options{Environment: os.Getenv, Output: con.Out, Messages: con.Err}
	cmd := &cobra.Command{
		Use:   "worker --plan FILE",
		Short: "Run one campaign of a fleet in its pod, and deliver the journal",
		Long: `Runs in the pods of a fleet, and only there: the objects of 'tuner fleet manifests' call it. It runs the campaign of the pod's index on its
machine. It sends the journal as it grows, as ConfigMaps that it may only create.

It ends with exit code 42 if the campaign cannot work on this machine. The model may have another digest, or the pod no cores of its own.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("cannot find tuner's own program file: %w", err)
			}
			o.Program, o.Version = program, con.Version
			return worker.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Plan, "plan", fleet.PlanDir+"/plan.json", "`file` with the plan of this type of machine")
	return cmd
}

// deliveries asks the cluster for what was delivered. Damage is the error if nothing can be used.
func deliveries(ctx context.Context, d driver.Driver) (list []record.Delivery, damage, err error) {
	list, damage, err = d.Deliveries(ctx)
	if len(list) == 0 {
		err = cmp.Or(err, damage)
	}
	return list, damage, err
}

func newFleetCollect(con Console) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "collect -f fleet.yaml",
		Short: "Write the journals that a fleet has delivered",
		Long: `Reads the records of a fleet with kubectl, checks that each journal is whole, and writes it to OUTPUT/MACHINE/MODEL. It changes nothing in the
cluster: run it twice, from two laptops, or in CI. 'tuner analyze --input' reads each folder, as one campaign.`,
		Example: "  tuner fleet collect -f fleet.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := readFleet(file)
			if err != nil {
				return err
			}
			list, damage, err := deliveries(cmd.Context(), newDriver(con, p))
			if err != nil {
				return err
			}
			collected, err := results.Collect(p, list)
			if err != nil {
				return errors.Join(exit.OfFiles(err), damage)
			}
			missing := collected.Missing()
			fmt.Fprintf(con.Out, "run %s: %d of %s collected in %s\n", p.Run, len(collected.Campaigns)-missing, words.Count(len(collected.Campaigns), "campaign"), p.Fleet.Output)
			for _, c := range collected.Campaigns {
				if len(c.Discarded) > 0 {
					fmt.Fprintf(con.Out, "  %s on %s: %s did not count\n", c.Model, c.Machine, words.Count(len(c.Discarded), "further attempt"))
				}
			}
			if missing > 0 {
				fmt.Fprintf(con.Out, "next: tuner fleet status -f %s says what the others do\n", words.ShellWord(file))
			} else {
				fmt.Fprintf(con.Out, "next: tuner fleet analyze -f %s\n", words.ShellWord(file))
			}
			return damage
		},
	}
	fleetFile(cmd, &file)
	return cmd
}

func newFleetStatus(con Console) *cobra.Command {
	var file, format string
	cmd := &cobra.Command{
		Use:   "status -f fleet.yaml",
		Short: "Say what each campaign of a fleet does, in the cluster's own words",
		Long: `Asks the cluster with kubectl, and changes nothing. The list has the scheduler's reason for each campaign that waits.
For a campaign on a node that does not answer, it has the command that frees it.`,
		Example: "  tuner fleet status -f fleet.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := readPrinted(file, format)
			if err != nil {
				return err
			}
			states, damage, err := newDriver(con, p).States(cmd.Context())
			if err != nil {
				return err
			}
			if format == "json" {
				return errors.Join(writeJSON(con.Out, states), damage)
			}
			return errors.Join(printFleetStatus(con.Out, p, states), damage)
		},
	}
	fleetFile(cmd, &file)
	terminal.AddFormat(cmd.Flags(), &format, "`format` on stdout: text or json")
	return cmd
}

func printFleetStatus(out io.Writer, p fleet.Plan, states []cluster.Status) error {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s\n\n", p.Run)
	var rows [][]string
	for _, s := range states {
		name := s.Model
		if p.Fleet.Repeats > 1 {
			name += fmt.Sprintf(" #%d", s.Repeat)
		}
		rows = append(rows, []string{s.Machine, name, s.State, s.Node, fmt.Sprint(s.Attempts), fmt.Sprintf("%.0f kB", float64(s.Bytes)/1e3), words.Shorten(s.Reason, longestReason)})
	}
	columns := []terminal.Column{{Title: "Machine"}, {Title: "Model"}, {Title: "State"}, {Title: "Node"}, {Title: "Attempts", Right: true}, {Title: "Journal", Right: true}, {Title: "Reason"}}
	if err := terminal.WriteTable(&b, columns, rows); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// longestReason is the number of characters of the cluster's words in a table.
const longestReason = 200

func newFleetAnalyze(con Console) *cobra.Command {
	var file, format string
	cmd := &cobra.Command{
		Use:   "analyze -f fleet.yaml",
		Short: "Rank the types of machines for each model: type, configuration, cost",
		Long: `Ranks what 'tuner fleet collect' has written. For each model it lists the types of machines, with the configuration that won on each. The costs
have a 95 % interval. With one machine of a type, an interval is about that machine. It reads the output folder only, and writes the page report.html there.`,
		Example: "  tuner fleet analyze -f fleet.yaml\n  tuner fleet analyze -f fleet.yaml --format json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			p, err := readPrinted(file, format)
			if err != nil {
				return err
			}
			list, err := readResults(p, results.ReadAll)
			if err != nil {
				return err
			}
			return rankFleet(con.Out, format, p.Fleet.Output, list)
		},
	}
	fleetFile(cmd, &file)
	terminal.AddFormat(cmd.Flags(), &format, "`format` on stdout: text or json")
	return cmd
}

// readResults reads what was collected of a run. read reads the list of a folder.
func readResults(p fleet.Plan, read func(dir string) (results.List, error)) (results.List, error) {
	list, err := read(p.Fleet.Output)
	if err != nil {
		return list, exit.With(exit.Usage, err)
	}
	if list.Run != p.Run {
		return list, exit.Usagef("%s: the campaigns in %q are those of run %s, and the file now asks for run %s; choose another `output:`, or collect again", p.Fleet.Path, p.Fleet.Output, list.Run, p.Run)
	}
	return list, nil
}

// describe names a configuration for people.
func describe(c analyze.Config) string { return figures.SetupText(c.Setup) }

// replay analyzes the campaign in a folder.
func replay(dir string) (analyze.Result, error) {
	return analyze.RankFolder(dir, formats.All().Words())
}

// rankFleet ranks the campaigns of a list, and writes the ranking.
func rankFleet(out io.Writer, format, dir string, list results.List) error {
	r, err := results.Rank(dir, list, replay, describe)
	if err != nil {
		return err
	}
	return writeRanking(out, format, dir, list, r)
}

// writeRanking writes a ranking, and its page into the fleet's output folder. It ends as infeasible if no machine
// can keep the constraints of a model, and as inconclusive while campaigns are missing.
func writeRanking(out io.Writer, format, dir string, list results.List, r results.Ranking) (err error) {
	page := filepath.Join(dir, output.FileName)
	if err := durable.WriteFile(page, func(w io.Writer) error { return output.WriteHTML(w, r) }); err != nil {
		return exit.OfFiles(fmt.Errorf("cannot write %q: %w", page, durable.Cause(err)))
	}
	if format == "json" {
		err = writeJSON(out, r)
	} else {
		err = output.WriteText(out, dir, r)
	}
	for _, m := range r.Models {
		if m.State() == results.StateInfeasible {
			err = errors.Join(err, exit.With(exit.Infeasible, fmt.Errorf("no type of machine keeps the constraints of %s", m.Model)))
		}
	}
	return errors.Join(err, exit.With(exit.Inconclusive, missing(list)))
}

// missing is the error of a list that lacks results; nil if it has all.
func missing(list results.List) error {
	n := list.Missing()
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s of %d are missing", words.Count(n, "campaign"), len(list.Campaigns))
}
