package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/pflag"

	"tuner/internal/cli/arguments"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/profile/starter"
	"tuner/report/csv"
	"tuner/report/data"
	"tuner/report/formats"
	"tuner/spec"
	"tuner/spec/edit"
	"tuner/spec/modelanalyzer"
	"tuner/spec/stages"
)

// profileFile is the content of -f: a profile of tuner's own, or the campaigns of Model Analyzer's
// file.
type profileFile struct {
	profiles []spec.Profile
	// analyses: of the results of each campaign, written after it; empty for tuner's own files
	analyses []spec.Analyze
	export   string // folder of the results of several models together; "" for a single one
}

// readProfiles reads the file of -f, tuner's or Model Analyzer's. Every mistake is a usage error.
// It reports settings that do not apply on stderr.
func readProfiles(ctx context.Context, con console, o profileOptions) (profileFile, error) {
	text, err := readProfileText(o.file)
	if err != nil {
		return profileFile{}, err
	}
	path := filepath.Clean(o.file)
	if !modelanalyzer.Is(text) {
		if err := o.foreign.refuse(); err != nil {
			return profileFile{}, err
		}
		p, err := o.parse(path, text)
		return profileFile{profiles: []spec.Profile{p}}, exit.With(exit.Usage, err)
	}
	if o.flags != (edit.Fields{}) {
		return profileFile{}, exit.Usagef("--p99, --budget and -o are for tuner's own files: write them into %s", path)
	}
	machine, err := foreignMachine(ctx)
	if err != nil {
		return profileFile{}, err
	}
	f, err := modelanalyzer.ParseProfile(path, text, machine, o.foreign.options())
	warnAll(con, f.Warnings)
	if err != nil {
		return profileFile{}, exit.With(exit.Usage, err)
	}
	var files profileFile
	for _, c := range f.Campaigns {
		files.profiles = append(files.profiles, c.Profile)
		if !f.Unreported {
			files.analyses = append(files.analyses, c.Analyze)
		}
	}
	if len(files.analyses) > 1 {
		files.export = f.Joint
	}
	return files, nil
}

// parse reads a profile of tuner's own, with the fields that flags set.
func (o profileOptions) parse(path string, text []byte) (spec.Profile, error) {
	text, lines, err := stages.Complete(path, text)
	if err != nil {
		return spec.Profile{}, err
	}
	p, err := spec.ParseProfile(path, text) // so that mistakes have the lines of the file
	if err != nil || o.flags == (edit.Fields{}) {
		return p, lines.InFile(err)
	}
	flags := o.flags
	if flags.Output != "" { // paths in the file are relative to its folder
		if flags.Output, err = starter.PathFrom(filepath.Dir(path), flags.Output); err != nil {
			return p, err
		}
	}
	if text, err = edit.Profile(text, flags); err != nil {
		return p, err
	}
	return spec.ParseProfile(path, text)
}

// readProfileText reads the file that -f names.
func readProfileText(path string) ([]byte, error) {
	if path == "" {
		return nil, exit.Usagef("no profile given: use 'tuner profile profile.yaml' ('tuner init MODEL' writes one)")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.Usagef("cannot read the profile %q: %v; 'tuner init MODEL' writes one", path, durable.Cause(err))
	}
	return text, nil
}

// foreignFlags are the flags of Model Analyzer that stand for fields of its files.
type foreignFlags struct {
	checkpoints string
	export      string
}

func (f *foreignFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.checkpoints, "checkpoint-directory", "", "with Model Analyzer's file: `folder` of the campaigns, in place of its checkpoint_directory")
	flags.StringVarP(&f.export, "export-path", "e", "", "with Model Analyzer's file: `folder` of the results, in place of its export_path")
}

func (f foreignFlags) options() modelanalyzer.Options {
	return modelanalyzer.Options{CheckpointDirectory: f.checkpoints, ExportPath: f.export, Formats: formats.All().Words()}
}

// refuse reports these flags if the file is tuner's own, which names its folders itself.
func (f foreignFlags) refuse() error {
	if f.checkpoints != "" || f.export != "" {
		return exit.Usagef("--checkpoint-directory and --export-path are for Model Analyzer's files: set `output:` in this file")
	}
	return nil
}

// foreignMachine returns the facts on which the meaning of Model Analyzer's files depends.
func foreignMachine(ctx context.Context) (modelanalyzer.Machine, error) {
	dir, err := os.Getwd()
	if err != nil {
		return modelanalyzer.Machine{}, fmt.Errorf("cannot find the working folder: %w", err)
	}
	m := modelanalyzer.Machine{Dir: dir, GPUs: len(hostinfo.Read(ctx).GPUs), Stages: func(folder string) []string {
		names, _ := stages.Of(folder) // opening the model reports the error
		return names
	}, Folders: foldersIn}
	if path, err := exec.LookPath(spec.DefaultServer); err == nil {
		m.Server = path
	}
	return m, nil
}

// foldersIn lists the names of the folders in one; none if it cannot be read.
func foldersIn(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // reading a campaign reports the error
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// warnAll prints warnings on stderr.
func warnAll(con console, warnings []modelanalyzer.Warning) {
	for _, w := range warnings {
		fmt.Fprintf(con.err, "warning: %s\n", w)
	}
}

// runProfile runs the campaigns of a file, one after the other. If nothing satisfies the
// constraints of one, the others still run.
func runProfile(ctx context.Context, con console, o profileOptions) error {
	if err := arguments.CheckFormat(o.output); err != nil {
		return err
	}
	var err error
	if con.err, o.quiet, err = con.stage.Messages(o.ui, o.quiet, con.in, con.out, con.err); err != nil {
		return err
	}
	f, err := readProfiles(ctx, con, o)
	if err != nil {
		return err
	}
	for i := range f.profiles {
		if err := o.replace(&f.profiles[i]); err != nil {
			return err
		}
	}
	if len(f.profiles) > 1 && !o.dryRun {
		if err := o.preparation(con).CheckAll(ctx, f.profiles); err != nil {
			return err
		}
	}
	var models exit.Several
	for i, p := range f.profiles {
		if len(f.profiles) > 1 && o.output == "text" {
			fmt.Fprintf(con.out, "%s (%d of %d), %s:\n", p.Name, i+1, len(f.profiles), p.Output)
		}
		err := runCampaign(ctx, con, o, p)
		if exit.IsUnmet(err) && len(f.analyses) > 0 && !o.dryRun {
			err = cmp.Or(analyzeAfter(con, o, f.analyses[i]), err) // uses the confirmed figures
		}
		if err := models.Add(err); err != nil {
			return err
		}
	}
	if f.export != "" && !o.dryRun {
		if err := models.Add(joinResults(con, f.export, f.analyses)); err != nil {
			return err
		}
	}
	return models.Unmet()
}

// analyzeAfter writes the results of a campaign that has just ended, like Model Analyzer's profile.
func analyzeAfter(con console, o profileOptions, a spec.Analyze) error {
	quiet := analyzeOptions{output: "none"}
	if o.output == "text" && !o.quiet {
		quiet.output = "text"
	}
	return analyzeOne(con, quiet, a)
}

// joinResults writes the tables of several models into one folder: those of Model Analyzer, and those
// of points and trials.
func joinResults(con console, export string, analyses []spec.Analyze) error {
	var parts []string
	for _, a := range analyses {
		parts = append(parts, a.Output)
	}
	written, err := csv.Join(export, parts, analyses[0].CSV)
	if err != nil {
		return exit.OfFiles(err)
	}
	more, err := data.Join(export, parts)
	if err != nil {
		return exit.OfFiles(err)
	}
	listFiles(con.err, export, append(written, more...))
	return nil
}
