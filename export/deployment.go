package export

import (
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"tuner/internal/telemetry"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/ort/provider"
)

// What the user leaves out.
const (
	DefaultImage       = "nvcr.io/nvidia/tritonserver:24.10-py3" // the release that `make -C lab conformance` compares the engine with
	DefaultGPUResource = "nvidia.com/gpu"
	DefaultReplicas    = 1
	DefaultMaxReplicas = 3
	GPUsAsMeasured     = -1
)

// Triton's model control modes.
const (
	ControlNone     = "none"
	ControlExplicit = "explicit"
	ControlPoll     = "poll"
)

// Options are the user's inputs, the same for every target.
type Options struct {
	Inputs       []string // folders of analyzed campaigns, at least one
	Name         string   // of what is deployed; "" derives it from the model's
	Image        string   // of Triton, with its tag
	GPUs         int      // of each server; GPUsAsMeasured: as many as the configurations were measured on
	GPUResource  string   // by which Kubernetes counts GPUs: nvidia.com/gpu, or a MIG profile's
	Replicas     int      // servers, ≥ 1
	MaxReplicas  int      // to which the autoscaler may raise them; no more than Replicas: no autoscaler
	ControlMode  string   // Triton's model control mode
	HostPolicies []string // POLICY,SETTING=VALUE, as tritonserver's --host-policy has them
	Storage      string   // where a cluster finds the repository: pvc://CLAIM[/PATH], s3://…; "" a claim of its own
	InstanceType string   // Azure's size of a machine; "" derives it from the machine that was measured
	ShareFiles   bool     // the models' files may be hard links to those of the inputs: for an export that stays beside them
}

// DefaultOptions are the options of a user who gives none.
func DefaultOptions() Options {
	return Options{
		Image: DefaultImage, GPUs: GPUsAsMeasured, GPUResource: DefaultGPUResource, Replicas: DefaultReplicas, MaxReplicas: DefaultMaxReplicas,
		ControlMode: ControlNone,
	}
}

// environment are the variables of a server. They keep the ONNX Runtime of an image from reporting
// to its maker.
func environment() map[string]string { return map[string]string{telemetry.Variable: telemetry.Off} }

// Deployment is what every target writes down.
type Deployment struct {
	Target          string
	Name            string // a DNS-1035 label: of services, endpoints, charts
	Models          []Model
	Image           string
	Arguments       []string // of tritonserver, beside the repository
	CPUs            int      // cores of a server
	Memory          int64    // MiB of a server; 0: unknown
	GPUs            int
	GPUResource     string
	Replicas        int
	MaxReplicas     int
	Storage         storage
	InstanceType    string
	Concurrency     int           // requests in flight that a server was tuned for, of all models together
	QueueTime       time.Duration // mean time of all models' requests in the queue, beyond which one more server is worth it
	LoadTime        time.Duration // that a server may take until it is ready
	P99             time.Duration // the largest of the models'
	RepositoryBytes int64
	Notes           []string // what a platform engineer should know, in sentences

	target target
}

// ResourcesText says what a server asks for: "2 cores, 512 MiB, 1 × nvidia.com/gpu".
func (d Deployment) ResourcesText() string {
	text := words.Count(d.CPUs, "core")
	if d.Memory > 0 {
		text += fmt.Sprintf(", %d MiB", d.Memory)
	}
	if d.GPUs > 0 {
		text += fmt.Sprintf(", %d × %s", d.GPUs, d.GPUResource)
	}
	return text
}

// How resources follow from measurements.
const (
	mebibyte     = 1 << 20
	memorySpare  = 1.3 // the measured peak is of a few seconds
	memoryServer = 256 // MiB that a Triton takes more than the engine that was measured, without a model
	memoryStep   = 64  // MiB
	queueShare   = 0.1 // of p99, the least queue time that is worth a further server

	leastLoad         = 5 * time.Minute
	leastLoadBuilding = 30 * time.Minute // of a provider that builds its engines then
	loadSpare         = 3                // other disks, and files that no cache holds

	sharedMemory = 256 // MiB of /dev/shm, which containers have 64 of: for tensors that clients hand over in memory
)

// newDeployment derives a deployment. It reports all mistakes in the options together.
func newDeployment(t target, models []Model, o Options) (Deployment, error) {
	if err := errors.Join(checkOptions(t, models, o)...); err != nil {
		return Deployment{}, &InputError{err}
	}
	d := Deployment{
		Target: t.name, target: t, Name: o.Name, Models: models, Image: o.Image, GPUs: o.GPUs, GPUResource: o.GPUResource,
		Replicas: o.Replicas, MaxReplicas: max(o.Replicas, o.MaxReplicas), LoadTime: loadTime(models), Arguments: arguments(models, o),
	}
	if d.Name == "" {
		d.Name = defaultName(models)
	}
	d.Storage = newStorage(o.Storage, d.Name)
	least, measured := 0, 0 // GPUs
	for _, m := range models {
		least, measured = max(least, m.leastGPUs()), max(measured, m.GPUs())
		d.CPUs += cores(m)
		d.Concurrency += m.Concurrency()
		d.P99 = max(d.P99, seconds(m.Values[measure.LatencyP99].Value))
	}
	if d.GPUs == GPUsAsMeasured {
		d.GPUs = measured
	}
	if d.GPUs < least {
		return Deployment{}, inputErrorf("--gpus %d: the tuned configuration needs %d", d.GPUs, least)
	}
	d.Memory, d.QueueTime = memory(models), queueTime(models)
	if t.instanceType != nil {
		var err error
		if d.InstanceType, err = t.instanceType(d, o.InstanceType); err != nil {
			return Deployment{}, err
		}
	}
	d.Notes = notes(d, o)
	return d, nil
}

// The forms of the options. They reach shells, YAML and paths, so they may hold nothing with a
// meaning there.
var (
	imagePattern      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)
	resourcePattern   = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	hostPolicyPattern = regexp.MustCompile(`^[A-Za-z0-9_]+,(numa-node=[0-9]+|cpu-cores=[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)$`)
	instancePattern   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// mostReplicas bounds both numbers of servers, to find slips of the finger.
const mostReplicas = 1000

func checkOptions(t target, models []Model, o Options) []error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(len(models) > 0, "nothing to export: name the output folder of an analyzed campaign with --input")
	check(o.Name == "" || dnsLabel(o.Name) == o.Name, "--name %q: allowed are lower-case letters, digits and - (first a letter, not last), at most %d", o.Name, longestName)
	check(imagePattern.MatchString(o.Image) && imageTag(o.Image) != "", "--image %q: an image with its tag is needed, such as %s", o.Image, DefaultImage)
	check(o.GPUs >= GPUsAsMeasured && o.GPUs <= mostReplicas, "--gpus %d: must be from 0 to %d", o.GPUs, mostReplicas)
	check(resourcePattern.MatchString(o.GPUResource), "--gpu-resource %q: such as %s or nvidia.com/mig-1g.5gb", o.GPUResource, DefaultGPUResource)
	check(o.Replicas >= 1 && o.Replicas <= mostReplicas, "--replicas %d: must be from 1 to %d", o.Replicas, mostReplicas)
	check(o.MaxReplicas >= 1 && o.MaxReplicas <= mostReplicas, "--max-replicas %d: must be from 1 to %d", o.MaxReplicas, mostReplicas)
	modes := []string{ControlNone, ControlExplicit, ControlPoll}
	check(slices.Contains(modes, o.ControlMode), "--model-control-mode %q: allowed are %s", o.ControlMode, strings.Join(modes, ", "))
	for _, p := range o.HostPolicies {
		check(hostPolicyPattern.MatchString(p), "--host-policy %q: such as gpu_0,numa-node=0 or cpu_0,cpu-cores=0-3", p)
	}
	check(o.InstanceType == "" || instancePattern.MatchString(o.InstanceType), "--instance-type %q: such as Standard_D4as_v4", o.InstanceType)
	check(t.instanceType != nil || o.InstanceType == "", "--instance-type %q: only Azure has machines of such sizes; leave it out for %s", o.InstanceType, t.name)
	check(t.isCluster() || o.GPUResource == DefaultGPUResource,
		"--gpu-resource %q: only Kubernetes knows resources by name; %s counts GPUs with --gpus", o.GPUResource, t.name)
	if err := checkStorage(t, o.Storage); err != nil {
		errs = append(errs, err)
	}
	names := map[string]string{}
	for _, m := range models {
		other, twice := names[m.Name]
		check(!twice, "--input %s and %s: both have a model %q, and a server has one of a name", other, m.Input, m.Name)
		names[m.Name] = m.Input
	}
	return errs
}

// imageTag is the tag of an image, or its digest; "" without either.
func imageTag(image string) string {
	if _, digest, ok := strings.Cut(image, "@"); ok {
		return digest
	}
	_, tag, _ := strings.Cut(path.Base(image), ":")
	return tag
}

// arguments are those of tritonserver. The configurations are complete, so Triton must not complete
// them. A model that fails to load ends the server, so that the failure shows at once.
func arguments(models []Model, o Options) []string {
	args := []string{"--model-control-mode=" + o.ControlMode}
	if o.ControlMode == ControlExplicit {
		for _, m := range models {
			args = append(args, "--load-model="+m.Name)
		}
	}
	args = append(args, "--strict-readiness=true", "--exit-on-error=true", "--disable-auto-complete-config")
	for _, p := range o.HostPolicies {
		args = append(args, "--host-policy="+p)
	}
	return args
}

// cores is the number of cores for a model: the threads of its instances, or the cores that the
// server used and one more, where that is larger. It is at most the number of the measured machine.
// On GPUs threads hardly compute, so only the use counts.
func cores(m Model) int {
	used := 1 + int(math.Ceil(min(m.Values[measure.CPU].Value, mostCount)))
	if m.GPUs() > 0 {
		return used
	}
	wanted := max(m.Instances*max(1, m.Threads), used)
	switch {
	case !m.knowsMachine():
		return wanted
	case m.Threads == 0:
		return m.Host.UsableCores()
	}
	return min(m.Host.UsableCores(), wanted)
}

// memory is the memory of a server with all models, in MiB: the measured peaks with a margin, and
// Triton's own memory. It is 0 where a peak is unknown.
func memory(models []Model) int64 {
	bytes := 0.0
	for _, m := range models {
		if m.Memory == 0 {
			return 0
		}
		bytes += m.Memory
	}
	steps := math.Ceil((bytes*memorySpare/mebibyte + memoryServer) / memoryStep)
	return int64(steps) * memoryStep
}

// queueTime is the mean queue time of all models' requests at their tuned loads. Each model counts
// by its requests per second, as in the autoscaler's metric, which is one mean for a server. Where
// requests hardly wait, a share of p99 takes the place of the queue time: a queue within the noise
// needs no further server.
func queueTime(models []Model) time.Duration {
	waited, requests := 0.0, 0.0 // s, and their number, in a second
	for _, m := range models {
		rate := m.Values[measure.Throughput].Value / float64(m.Load.BatchSize)
		waited += rate * max(m.Values[measure.QueueTime].Value, queueShare*m.Values[measure.LatencyP99].Value)
		requests += rate
	}
	return seconds(waited / requests).Round(time.Microsecond)
}

// loadTime bounds the time in which a server loads its models, one after the other.
func loadTime(models []Model) time.Duration {
	least, measured := leastLoad, time.Duration(0)
	for _, m := range models {
		measured += m.LaunchTime
		if provider.Of(m.Provider).BuildsEngines {
			least = leastLoadBuilding
		}
	}
	return max(least, loadSpare*measured)
}

func seconds(s float64) time.Duration { return time.Duration(min(s, mostLoad) * float64(time.Second)) }
