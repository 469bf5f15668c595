package export

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/export/tuned"
	"tuner/search/verdict"
)

// accelerated gives the result's configurations an execution accelerator of CPUs.
func accelerated(name, parameters string) []string {
	const place = `default_model_filename:`
	return []string{place, `optimization { execution_accelerators { cpu_execution_accelerator { name: \"` + name + `\" ` + parameters + ` } } } ` + place}
}

// Notes appear only if the deployment differs from the measurement.
func TestNotes(t *testing.T) {
	t.Parallel()
	another := func(replace ...string) tuned.Model { m := parsed(t, replace...); m.Name = "another"; return m }
	fourGPUs, one := gpu(), `{"name": "NVIDIA A100 80GB PCIe"}`
	fourGPUs[len(fourGPUs)-1] = strings.ReplaceAll(fourGPUs[len(fourGPUs)-1], one, one+strings.Repeat(", "+one, 3))
	named := func(o *Options) { o.Name = "m" }
	with := func(change func(*Options)) func(*Options) { return func(o *Options) { named(o); change(o) } }
	for _, test := range []struct {
		name    string
		target  string
		options func(*Options)
		models  []tuned.Model
		want    string // "": no note
	}{
		{"as measured", Kubernetes, named, []tuned.Model{parsed(t)}, ""},
		{"two models", Kubernetes, named, []tuned.Model{parsed(t), another()},
			"The models get 4 cores together, but each campaign had a machine with 2 to itself. "},
		{"two models on a large machine", Kubernetes, named, []tuned.Model{parsed(t, `"logical": 2`, `"logical": 16`), another(`"logical": 2`, `"logical": 16`)}, ""},
		{"XNNPACK", Kubernetes, named, []tuned.Model{parsed(t, accelerated("xnnpack", "")...)},
			"names the execution accelerator \"xnnpack\". `tuner serve` has it, but a stock Triton does not load the model"},
		{"oneDNN", Helm, named, []tuned.Model{parsed(t, accelerated("dnnl", "")...)}, `names the execution accelerator "dnnl"`},
		{"OpenVINO with an option", Kubernetes, named, []tuned.Model{parsed(t, accelerated("openvino", `parameters { key: \"num_of_threads\" value: \"1\" }`)...)},
			"sets options of OpenVINO. `tuner serve` uses them, but a stock Triton ignores them, so there each instance has a thread for each core"},
		{"OpenVINO without", Kubernetes, named, []tuned.Model{parsed(t, accelerated("openvino", "")...)},
			"does not set OpenVINO's num_of_threads, so it starts a thread for each core of the node, whatever the limit. It needs nodes with 2 cores"},
		{"a shared session", Kubernetes, named, []tuned.Model{parsed(t, `default_model_filename:`, `parameters { key: \"share_session_between_instances\" value { string_value: \"1\" } } default_model_filename:`)},
			"sets share_session_between_instances. `tuner serve` honours it, but a stock Triton ignores it"},
		{"any number of threads", Kubernetes, named, []tuned.Model{parsed(t, `key: \"intra_op_thread_count\"`, `key: \"other\"`)},
			"does not set intra_op_thread_count, so it starts a thread for each core of the node, whatever the limit. It needs nodes with 2 cores"},
		{"any number on an unknown machine", Kubernetes, named,
			[]tuned.Model{parsed(t, append(measuredOn("server", "remote"), `key: \"intra_op_thread_count\"`, `key: \"other\"`)...)},
			"does not set intra_op_thread_count, so it starts a thread for each core of the node, whatever the limit."},
		{"fewer GPUs", Kubernetes, with(func(o *Options) { o.GPUs = 1 }), []tuned.Model{parsed(t, fourGPUs...)},
			`Model "minilm" was measured with instances on 4 GPUs, but a server has 1.`},
		{"servers of Compose", Compose, with(func(o *Options) { o.Replicas = 2 }), []tuned.Model{parsed(t)},
			"The target compose is one server: --replicas and --max-replicas have no effect there."},
		{"servers of docker run", Triton, with(func(o *Options) { o.MaxReplicas = 1 }), []tuned.Model{parsed(t)}, "The target triton is one server: "},
		{"servers of Kubernetes", Kubernetes, with(func(o *Options) { o.Replicas, o.MaxReplicas = 2, 5 }), []tuned.Model{parsed(t)}, ""},
		{"an autoscaler of Azure's", AzureML, with(func(o *Options) { o.MaxReplicas = 5 }), []tuned.Model{parsed(t)}, "--max-replicas has no effect there."},
		{"servers of Azure's", AzureML, with(func(o *Options) { o.Replicas = 3 }), []tuned.Model{parsed(t)}, ""},
	} {
		o := defaults()
		test.options(&o)
		for i := range test.models {
			test.models[i].State = verdict.Proven // other states add a note
		}
		target, _ := targetOf(test.target)
		d, err := newDeployment(target, test.models, o)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(d.Notes, "\n")
		if !strings.Contains(text, test.want) || (test.want == "") != (text == "") {
			t.Errorf("%s: the notes are %q, want %q", test.name, d.Notes, test.want)
		}
	}
}

// Targets without sizes refuse an Azure size.
func TestInstanceTypeElsewhere(t *testing.T) {
	t.Parallel()
	for _, target := range targets() {
		o := defaults()
		o.InstanceType = "Standard_D4as_v4"
		_, err := newDeployment(target, []tuned.Model{parsed(t)}, o)
		want := `--instance-type "Standard_D4as_v4": only Azure has such sizes; leave the flag out for ` + target.name
		if target.name == AzureML && err != nil || target.name != AzureML && (err == nil || err.Error() != want) {
			t.Errorf("%s: error %v, want %q", target.name, err, want)
		}
	}
}

// A note gives the report's state and probability of an answer that is not proven.
func TestAnswerNotes(t *testing.T) {
	t.Parallel()
	kept := 0.634
	check := func(m tuned.Model, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, answerNotes([]tuned.Model{m})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.State, diff)
		}
	}
	check(tuned.Model{Name: "m", State: verdict.Close, Kept: &kept}, `The result of model "m" is: close to the limit; all limits kept: 63 %.`)
	check(tuned.Model{Name: "m", State: verdict.Unfinished}, `The result of model "m" is: unfinished.`)
	check(tuned.Model{Name: "m", State: verdict.Proven, Kept: &kept})
	check(tuned.Model{Name: "m", State: "`rm`"})
}
