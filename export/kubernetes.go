package export

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tuner/capacity"
	"tuner/export/scaling"
	"tuner/export/tuned"
	"tuner/internal/words"
)

// The ports of tritonserver, and their names in pods and services.
const (
	portHTTP    = 8000
	portGRPC    = 8001
	portMetrics = 8002
)

// Times for the end of a server. First it leaves the endpoints, then the requests in flight end.
const (
	drainSeconds = 10 // preStop
	graceSeconds = 60 // total; tritonserver's own --exit-timeout-secs is 30
)

const manifestsDir = "manifests"

// Kubernetes is the name of the target for plain manifests.
const Kubernetes = "kubernetes"

//go:embed readme/kubernetes.md
var kubernetesReadme string

func kubernetesTarget() target {
	return target{
		name: Kubernetes, about: "manifests", readme: kubernetesReadme, mount: modelsMount, files: Deployment.kubernetes, schemes: tritonSchemes(),
		commands: func(d Deployment) []string {
			return append(d.copyCommands(manifestsDir+"/"+claimFile), "kubectl apply -f "+manifestsDir)
		},
	}
}

// kubernetes writes manifests: claim and loader of the repository, Deployment, Service, disruption
// budget, and the autoscaler with its metric's rule.
func (d Deployment) kubernetes() written {
	var w written
	manifest := func(name, comment string, spec object) {
		w.addDocuments(filepath.Join(manifestsDir, name), comment, spec)
	}
	d.addClaim(&w, manifestsDir)
	manifest("deployment.yaml", "Triton with the tuned models. Requests equal limits and cores are whole numbers, as exclusive cores need (see README.md).", d.server())
	manifest("service.yaml", "HTTP, gRPC and metrics. gRPC connections live long: balance them in the client or with a mesh.", d.service())
	manifest("disruption-budget.yaml", d.disruptionComment(), d.disruptionBudget(d.selector()))
	if d.scales() {
		manifest("autoscaler.yaml", d.autoscalerComment(), d.autoscaler(d.Name))
		d.addAdapter(&w)
	}
	d.addClusterMonitoring(&w)
	return w
}

func (d Deployment) scales() bool { return d.MaxReplicas > d.Replicas }

// autoscaler returns the object that changes the number of servers of a Deployment by its name.
func (d Deployment) autoscaler(deployment string) object {
	version, kind, spec := d.Scaling.Object(scaling.Target{Name: deployment, Prometheus: d.Prometheus})
	return d.object(version, kind, d.Name, spec)
}

func (d Deployment) autoscalerComment() string {
	if d.Plan != nil {
		return "Follows the requests, as tuner plan chose."
	}
	return "Adds servers when requests wait in the queue for longer than at the tuned load."
}

// addAdapter adds the values of prometheus-adapter. KEDA asks Prometheus itself.
func (d Deployment) addAdapter(w *written) {
	if d.Scaling.Scaler == capacity.HPA {
		w.addDocuments("prometheus-adapter.yaml", scaling.AdapterComment, d.Scaling.AdapterValues())
	}
}

// object is a Kubernetes object of any kind.
type object struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       any      `yaml:"spec"`
}

type metadata struct {
	Name        string            `yaml:"name,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

func (d Deployment) object(apiVersion, kind, name string, spec any) object {
	labels := d.selector()
	labels["app.kubernetes.io/managed-by"] = "tuner"
	return object{apiVersion, kind, metadata{Name: name, Labels: labels}, spec}
}

// selector returns the labels that select the server's pods.
func (d Deployment) selector() map[string]string {
	return map[string]string{"app.kubernetes.io/name": d.Name, "app.kubernetes.io/component": "triton"}
}

type deploymentSpec struct {
	Replicas                int         `yaml:"replicas,omitempty"` // omitted if there is an autoscaler
	ProgressDeadlineSeconds int         `yaml:"progressDeadlineSeconds"`
	Strategy                any         `yaml:"strategy"`
	Selector                labelSet    `yaml:"selector"`
	Template                podTemplate `yaml:"template"`
}

type labelSet struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type podTemplate struct {
	Metadata metadata `yaml:"metadata"`
	Spec     podSpec  `yaml:"spec"`
}

type podSpec struct {
	RestartPolicy                 string             `yaml:"restartPolicy,omitempty"`
	AutomountServiceAccountToken  bool               `yaml:"automountServiceAccountToken"`
	TerminationGracePeriodSeconds int                `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               podSecurity        `yaml:"securityContext"`
	Spread                        []spreadConstraint `yaml:"topologySpreadConstraints,omitempty"`
	Containers                    []container        `yaml:"containers"`
	Volumes                       []volume           `yaml:"volumes,omitempty"`
}

// podSecurity has the settings for the image's own user triton-server.
type podSecurity struct {
	RunAsNonRoot   bool              `yaml:"runAsNonRoot"`
	RunAsUser      int               `yaml:"runAsUser"`
	FSGroup        int               `yaml:"fsGroup"`
	SeccompProfile map[string]string `yaml:"seccompProfile"`
}

func tritonUser() podSecurity {
	return podSecurity{true, 1000, 1000, map[string]string{"type": "RuntimeDefault"}}
}

type container struct {
	Name            string            `yaml:"name"`
	Image           string            `yaml:"image"`
	Args            []string          `yaml:"args"`
	Env             []variable        `yaml:"env,omitempty"`
	Ports           []containerPort   `yaml:"ports,omitempty"`
	StartupProbe    *probe            `yaml:"startupProbe,omitempty"`
	ReadinessProbe  *probe            `yaml:"readinessProbe,omitempty"`
	LivenessProbe   *probe            `yaml:"livenessProbe,omitempty"`
	Lifecycle       any               `yaml:"lifecycle,omitempty"`
	Resources       resources         `yaml:"resources"`
	SecurityContext containerSecurity `yaml:"securityContext"`
	VolumeMounts    []mount           `yaml:"volumeMounts,omitempty"`
}

type containerSecurity struct {
	AllowPrivilegeEscalation bool                `yaml:"allowPrivilegeEscalation"`
	Capabilities             map[string][]string `yaml:"capabilities"`
}

func unprivileged() containerSecurity {
	return containerSecurity{Capabilities: map[string][]string{"drop": {"ALL"}}}
}

type variable struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"`
}

// variables returns the environment in Kubernetes' form.
func (d Deployment) variables() []variable {
	var list []variable
	all := d.environment()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, variable{name, all[name]})
	}
	return list
}

type containerPort struct {
	Name          string `yaml:"name"`
	ContainerPort int    `yaml:"containerPort"`
}

type probe struct {
	probeHandler     `yaml:",inline"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	TimeoutSeconds   int `yaml:"timeoutSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

// probeHandler has one of the two.
type probeHandler struct {
	HTTPGet *httpGet     `yaml:"httpGet,omitempty"`
	Exec    *execCommand `yaml:"exec,omitempty"`
}

type httpGet struct {
	Path string `yaml:"path"`
	Port int    `yaml:"port"`
}

type execCommand struct {
	Command []string `yaml:"command"`
}

func probeOf(h probeHandler, period, failures int) *probe { return &probe{h, period, 2, failures} }

// resources are the same for requests and limits, so the pod's class of service is Guaranteed. A
// kubelet with the static CPU manager gives such pods exclusive cores. With the topology manager it
// also gives them memory of one NUMA node.
type resources struct {
	Requests map[string]string `yaml:"requests"`
	Limits   map[string]string `yaml:"limits"`
}

func (d Deployment) resources() resources {
	all := map[string]string{"cpu": strconv.Itoa(d.CPUs)}
	if d.Memory > 0 {
		all["memory"] = fmt.Sprintf("%dMi", d.Memory)
	}
	if d.GPUs > 0 {
		all[d.GPUResource] = strconv.Itoa(d.GPUs)
	}
	return resources{all, all}
}

type volume struct {
	Name                  string       `yaml:"name"`
	PersistentVolumeClaim *claimVolume `yaml:"persistentVolumeClaim,omitempty"`
	EmptyDir              *emptyDir    `yaml:"emptyDir,omitempty"`
}

type emptyDir struct {
	Medium    string `yaml:"medium"`
	SizeLimit string `yaml:"sizeLimit"`
}

type claimVolume struct {
	ClaimName string `yaml:"claimName"`
	ReadOnly  bool   `yaml:"readOnly,omitempty"`
}

type mount struct {
	Name      string `yaml:"name"`
	MountPath string `yaml:"mountPath"`
	SubPath   string `yaml:"subPath,omitempty"`
	ReadOnly  bool   `yaml:"readOnly,omitempty"`
}

// rollout is the strategy for the replacement of servers.
type rollout struct {
	MaxSurge       int `yaml:"maxSurge"`
	MaxUnavailable int `yaml:"maxUnavailable"`
}

// rollout keeps every server until its successor is ready. If only one node at a time can mount the
// models, the old server ends first. Otherwise a successor on another node would wait for it.
func (d Deployment) rollout() rollout {
	if d.Storage.Own && d.accessMode() == readWriteOnce {
		return rollout{MaxUnavailable: 1}
	}
	return rollout{MaxSurge: 1}
}

func (d Deployment) strategy() any {
	return map[string]any{"type": "RollingUpdate", "rollingUpdate": d.rollout()}
}

// scrapedPods returns the usual annotations of pods, by which Prometheus finds the metrics of a server.
func scrapedPods() map[string]string {
	return map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": strconv.Itoa(portMetrics), "prometheus.io/path": "/metrics"}
}

// server returns the Deployment.
func (d Deployment) server() object {
	spec := deploymentSpec{
		ProgressDeadlineSeconds: d.progressDeadline(),
		Strategy:                d.strategy(),
		Selector:                labelSet{d.selector()},
		Template: podTemplate{
			Metadata: metadata{Labels: d.selector(), Annotations: scrapedPods()},
			Spec: podSpec{
				TerminationGracePeriodSeconds: graceSeconds, SecurityContext: tritonUser(), Spread: d.spread(d.selector()),
				Containers: []container{d.triton()}, Volumes: d.volumes(),
			},
		},
	}
	if !d.scales() {
		spec.Replicas = d.Replicas
	}
	return d.object("apps/v1", "Deployment", d.Name, spec)
}

func (d Deployment) triton() container {
	c := container{
		Name: "triton", Image: d.Image, Args: append([]string{"tritonserver", "--model-repository=" + d.Storage.repository()}, d.Arguments...),
		Env:            d.variables(),
		Ports:          []containerPort{{"http", portHTTP}, {"grpc", portGRPC}, {"metrics", portMetrics}},
		StartupProbe:   probeOf(d.allReady(portHTTP), startupPeriod, d.startupFailures()),
		ReadinessProbe: probeOf(d.allReady(portHTTP), readyPeriod, readyFailures),
		LivenessProbe:  probeOf(probeHandler{HTTPGet: &httpGet{"/v2/health/live", portHTTP}}, 10, 3),
		Lifecycle:      map[string]any{"preStop": map[string]any{"sleep": map[string]int{"seconds": drainSeconds}}},
		Resources:      d.resources(), SecurityContext: unprivileged(),
	}
	if d.Storage.Claim != "" {
		c.VolumeMounts = []mount{{Name: "models", MountPath: modelsMount, SubPath: d.Storage.Path, ReadOnly: true}}
	}
	c.VolumeMounts = append(c.VolumeMounts, mount{Name: "shm", MountPath: "/dev/shm"})
	return c
}

func (d Deployment) volumes() []volume {
	var list []volume
	if d.Storage.Claim != "" {
		list = append(list, volume{Name: "models", PersistentVolumeClaim: &claimVolume{ClaimName: d.Storage.Claim, ReadOnly: true}})
	}
	return append(list, volume{Name: "shm", EmptyDir: &emptyDir{"Memory", fmt.Sprintf("%dMi", sharedMemory)}})
}

// Period of the probes in seconds, and the number of failures after which a server gets no more
// requests.
const (
	startupPeriod = 5
	readyPeriod   = 5
	readyFailures = 3
)

// startupFailures returns the number of failed probes that a starting server is allowed.
func (d Deployment) startupFailures() int { return periods(d.LoadTime, startupPeriod) }

// periods returns the number of periods, in seconds, that a time takes, rounded up.
func periods(t time.Duration, period int) int { return int(math.Ceil(t.Seconds() / float64(period))) }

// placeSeconds is Kubernetes' default time for a new server of a rollout: scheduling, pulling the
// image, and starting.
const placeSeconds = 600

// progressDeadline returns placeSeconds plus the time to load the models, in seconds. A rollout
// fails after that time.
func (d Deployment) progressDeadline() int {
	return placeSeconds + int(math.Ceil(d.LoadTime.Seconds()))
}

// allReady makes a probe that checks whether every model of the export is ready. A server with an
// empty repository reports ready at once, and does not look for models that come later. A pod that
// is not ready in time is restarted, and looks again.
func (d Deployment) allReady(port int) probeHandler {
	if list := d.folders(); len(list) == 1 {
		return probeHandler{HTTPGet: &httpGet{readyPath(list[0]), port}}
	}
	return probeHandler{Exec: &execCommand{d.askReady(port)}} // an HTTP probe checks only one address
}

// askReady returns a command for the container that succeeds if every model of the export is ready.
// Triton's image has curl.
func (d Deployment) askReady(port int) []string {
	command := []string{"curl", "--fail", "--fail-early", "--silent"}
	for _, m := range d.folders() {
		command = append(command, fmt.Sprintf("http://localhost:%d%s", port, readyPath(m)))
	}
	return command
}

func readyPath(m tuned.Model) string { return "/v2/models/" + m.Name + "/ready" }

type serviceSpec struct {
	Selector map[string]string `yaml:"selector"`
	Ports    []servicePort     `yaml:"ports"`
}

type servicePort struct {
	Name       string `yaml:"name"`
	Port       int    `yaml:"port"`
	TargetPort string `yaml:"targetPort"`
}

func (d Deployment) service() object {
	return d.object("v1", "Service", d.Name, serviceSpec{d.selector(), []servicePort{
		{"http", portHTTP, "http"}, {"grpc", portGRPC, "grpc"}, {"metrics", portMetrics, "metrics"},
	}})
}

func (d Deployment) disruptionBudget(pods map[string]string) object {
	return d.object("policy/v1", "PodDisruptionBudget", d.Name, struct {
		MaxUnavailable int      `yaml:"maxUnavailable"`
		Selector       labelSet `yaml:"selector"`
	}{d.disruptions(), labelSet{pods}})
}

func (d Deployment) disruptionComment() string {
	return fmt.Sprintf("Nodes are drained %s at a time.", words.Count(d.disruptions(), "server"))
}

type claimSpec struct {
	AccessModes []string       `yaml:"accessModes"`
	Resources   claimResources `yaml:"resources"`
}

type claimResources struct {
	Requests map[string]string `yaml:"requests"`
}

// Access modes of a claim.
const (
	readWriteOnce = "ReadWriteOnce" // mounted on one node
	readWriteMany = "ReadWriteMany"
)

// accessMode allows several nodes if there may be several servers.
func (d Deployment) accessMode() string {
	if d.MaxReplicas > 1 {
		return readWriteMany
	}
	return readWriteOnce
}

// claimSize returns space for two generations of the models, in GiB.
func (d Deployment) claimSize() string {
	const gibibyte = 1 << 30
	return fmt.Sprintf("%dGi", 2*d.RepositoryBytes/gibibyte+1)
}

func (d Deployment) claim() object {
	return d.object("v1", "PersistentVolumeClaim", d.Storage.Claim, claimSpec{
		[]string{d.accessMode()}, claimResources{map[string]string{"storage": d.claimSize()}},
	})
}

// loader returns a sleeping pod with the claim mounted. It uses the server's image, which the nodes
// need anyway.
func (d Deployment) loader() object {
	small := map[string]string{"cpu": "100m", "memory": "128Mi"}
	o := d.object("v1", "Pod", d.Name+"-loader", podSpec{
		RestartPolicy: "Never", SecurityContext: tritonUser(),
		Containers: []container{{
			Name: "loader", Image: d.Image, Args: []string{"sleep", "3600"}, Resources: resources{small, small}, SecurityContext: unprivileged(),
			VolumeMounts: []mount{{Name: "models", MountPath: modelsMount}},
		}},
		Volumes: []volume{{Name: "models", PersistentVolumeClaim: &claimVolume{ClaimName: d.Storage.Claim}}},
	})
	o.Metadata.Labels["app.kubernetes.io/component"] = "loader" // excludes it from the service
	return o
}
