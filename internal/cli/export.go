package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tuner/export"
	"tuner/internal/cli/arguments"
	"tuner/internal/cli/planning"
	"tuner/internal/exit"
	"tuner/internal/terminal"
)

// exportOptions are the flags of `tuner export`.
type exportOptions struct {
	export.Options
	dir    string
	output string
	plan   string // plan.json
}

func newExport(con console) *cobra.Command {
	var o exportOptions
	cmd := verb(&cobra.Command{
		Use:   "export TARGET FOLDER… -o DIR",
		Short: "Write deployment files from an analyzed result",
		Long: `Writes deployment files of the configuration that 'tuner analyze' chose. The targets:

` + export.TargetsHelp() + `

Each export holds the model repository, a README.md with the commands to run, and export.json.

Cores, memory, concurrency and the autoscaler's target follow from the measurements. A result of several models, a pipeline with its
stages, or several folders become one server with all models. The command contacts no other machine. It writes the whole folder or nothing. 'tuner export verify
DIR' serves an export here and compares it with its report.`,
		Example: `  tuner export kubernetes out/minilm -o deploy
  tuner export helm out/minilm out/resnet --name encoders -o deploy
  tuner export kserve out/minilm --storage s3://models/minilm -o deploy
  tuner export kubernetes out/minilm --plan plan.json -o deploy
  tuner export verify deploy`,
		Args: arguments.Usage(arguments.First("target", export.Targets())),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Inputs = append(o.Inputs, args[1:]...)
			for _, name := range []string{"replicas", "max-replicas"} {
				if o.plan != "" && cmd.Flags().Changed(name) {
					return exit.Usagef("--plan and --%s contradict each other: the plan has the numbers of servers", name)
				}
			}
			return runExport(con, args[0], o)
		},
	})
	o.flags(cmd)
	cmd.AddCommand(newExportVerify(con))
	return cmd
}

func (o *exportOptions) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	defaults := export.DefaultOptions()
	flags.StringArrayVar(&o.Inputs, "input", nil, "output `folder` of an analyzed campaign; may be repeated")
	flags.StringVarP(&o.dir, "output-folder", "o", "", "`folder` to write; it must not exist")
	flags.StringVar(&o.Name, "name", "", "name of the deployment, a DNS label (default: the model's name, with dashes in place of other characters)")
	flags.StringVar(&o.Image, "image", defaults.Image, "Triton's image with its tag")
	flags.IntVar(&o.GPUs, "gpus", defaults.GPUs, "GPUs of each server; -1: as many as were measured")
	flags.StringVar(&o.GPUResource, "gpu-resource", defaults.GPUResource, "Kubernetes resource of a GPU, such as nvidia.com/mig-1g.5gb")
	flags.IntVar(&o.Replicas, "replicas", defaults.Replicas, "servers; with an autoscaler the least number")
	flags.IntVar(&o.MaxReplicas, "max-replicas", defaults.MaxReplicas, "most servers; without an autoscaler if not above --replicas")
	flags.StringVar(&o.plan, "plan", "", "`file` of 'tuner plan --format json': its configuration, numbers of servers and autoscaler")
	flags.StringVar(&o.Prometheus, "prometheus", defaults.Prometheus, "`address` of Prometheus, for a plan with KEDA")
	flags.StringVar(&o.ControlMode, "model-control-mode", defaults.ControlMode, "tritonserver's --model-control-mode: none, explicit or poll")
	flags.StringArrayVar(&o.HostPolicies, "host-policy", nil, "POLICY,SETTING=VALUE of tritonserver, such as gpu_0,numa-node=0; may be repeated")
	flags.StringVar(&o.Storage, "storage", "", "address of the repository for a cluster: pvc://CLAIM/PATH, s3://BUCKET/PATH … (default: a claim of its own)")
	flags.StringVar(&o.InstanceType, "instance-type", "", "azureml: size of a machine (default: the smallest with the server's cores, memory and GPUs)")
	terminal.AddFormat(flags, &o.output, "`format` on stdout: text or json (export.json with the list of files)")
}

func runExport(con console, target string, o exportOptions) error {
	if err := arguments.CheckFormat(o.output); err != nil {
		return err
	}
	if o.dir == "" {
		return exit.Usagef("no folder to write is given: use -o DIR")
	}
	write := func() (export.Export, error) { return export.Write(target, o.dir, o.Options) }
	if o.plan != "" {
		write = func() (export.Export, error) { return planning.Export(target, o.dir, o.plan, o.Options) }
	}
	e, err := write()
	if err != nil {
		return exit.OfFiles(err)
	}
	for _, note := range e.Deployment.Notes {
		fmt.Fprintf(con.err, "note: %s\n", note)
	}
	if o.output == "json" {
		return writeJSON(con.out, e.Summary(o.dir))
	}
	return printExport(con.out, o.dir, e)
}

func printExport(out io.Writer, dir string, e export.Export) error {
	var b strings.Builder
	d := e.Deployment
	fmt.Fprintf(&b, "%s for %s: %s; %s\nwrote to %s:\n", d.Name, d.Target, d.ResourcesText(), d.Image, dir)
	for _, f := range e.Files {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	fmt.Fprintf(&b, "next, in that folder (%s says more):\n", filepath.Join(dir, "README.md"))
	for _, c := range e.Next {
		fmt.Fprintf(&b, "  %s\n", c)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
