package objects

// The fields of Kubernetes' objects that a fleet needs. Source: Kubernetes API reference, v1.36. The
// laboratory decodes what is written strictly into k8s.io/api's own types, and gives it to a real API
// server.

// Object is a Kubernetes object.
type Object struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   metadata          `yaml:"metadata"`
	Immutable  bool              `yaml:"immutable,omitempty"` // ConfigMap
	Data       map[string]string `yaml:"data,omitempty"`      // ConfigMap
	Rules      []rule            `yaml:"rules,omitempty"`     // Role
	RoleRef    *roleRef          `yaml:"roleRef,omitempty"`   // RoleBinding
	Subjects   []subject         `yaml:"subjects,omitempty"`  // RoleBinding
	Automount  *bool             `yaml:"automountServiceAccountToken,omitempty"`
	Spec       any               `yaml:"spec,omitempty"`
}

type metadata struct {
	Name      string            `yaml:"name,omitempty"`
	Namespace string            `yaml:"namespace,omitempty"`
	Labels    map[string]string `yaml:"labels,omitempty"`
}

type rule struct {
	APIGroups []string `yaml:"apiGroups"`
	Resources []string `yaml:"resources"`
	Verbs     []string `yaml:"verbs"`
}

type roleRef struct {
	APIGroup string `yaml:"apiGroup"`
	Kind     string `yaml:"kind"`
	Name     string `yaml:"name"`
}

type subject struct {
	Kind      string `yaml:"kind"`
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace"`
}

type jobSpec struct {
	Suspend                 bool        `yaml:"suspend,omitempty"`
	CompletionMode          string      `yaml:"completionMode"`
	Completions             int         `yaml:"completions"`
	Parallelism             int         `yaml:"parallelism"`
	BackoffLimitPerIndex    int         `yaml:"backoffLimitPerIndex"`
	MaxFailedIndexes        int         `yaml:"maxFailedIndexes"`
	PodReplacementPolicy    string      `yaml:"podReplacementPolicy"`
	PodFailurePolicy        podFailures `yaml:"podFailurePolicy"`
	ActiveDeadlineSeconds   int         `yaml:"activeDeadlineSeconds"`
	TTLSecondsAfterFinished int         `yaml:"ttlSecondsAfterFinished"`
	Template                podTemplate `yaml:"template"`
}

type podFailures struct {
	Rules []failureRule `yaml:"rules"`
}

type failureRule struct {
	Action          string         `yaml:"action"`
	OnExitCodes     *exitCodes     `yaml:"onExitCodes,omitempty"`
	OnPodConditions []podCondition `yaml:"onPodConditions,omitempty"`
}

type exitCodes struct {
	ContainerName string `yaml:"containerName"`
	Operator      string `yaml:"operator"`
	Values        []int  `yaml:"values"`
}

type podCondition struct {
	Type   string `yaml:"type"`
	Status string `yaml:"status"`
}

type podTemplate struct {
	Metadata metadata `yaml:"metadata"`
	Spec     podSpec  `yaml:"spec"`
}

type podSpec struct {
	RestartPolicy                 string            `yaml:"restartPolicy"`
	ServiceAccountName            string            `yaml:"serviceAccountName"`
	TerminationGracePeriodSeconds int               `yaml:"terminationGracePeriodSeconds"`
	ActiveDeadlineSeconds         int               `yaml:"activeDeadlineSeconds"`
	PriorityClassName             string            `yaml:"priorityClassName,omitempty"`
	NodeSelector                  map[string]string `yaml:"nodeSelector"`
	Tolerations                   []toleration      `yaml:"tolerations"`
	Affinity                      *affinity         `yaml:"affinity,omitempty"`
	SecurityContext               podSecurity       `yaml:"securityContext"`
	Containers                    []container       `yaml:"containers"`
	Volumes                       []volume          `yaml:"volumes"`
}

type toleration struct {
	Key               string `yaml:"key,omitempty"`
	Operator          string `yaml:"operator,omitempty"`
	Value             string `yaml:"value,omitempty"`
	Effect            string `yaml:"effect,omitempty"`
	TolerationSeconds *int   `yaml:"tolerationSeconds,omitempty"`
}

type affinity struct {
	Nodes *nodeAffinity `yaml:"nodeAffinity,omitempty"`
	Pods  *antiAffinity `yaml:"podAntiAffinity,omitempty"`
}

type nodeAffinity struct {
	Required nodeSelector `yaml:"requiredDuringSchedulingIgnoredDuringExecution"`
}

type nodeSelector struct {
	Terms []nodeTerm `yaml:"nodeSelectorTerms"`
}

type nodeTerm struct {
	Fields []nodeField `yaml:"matchFields"`
}

type nodeField struct {
	Key      string   `yaml:"key"`
	Operator string   `yaml:"operator"`
	Values   []string `yaml:"values"`
}

type antiAffinity struct {
	Required []affinityTerm `yaml:"requiredDuringSchedulingIgnoredDuringExecution"`
}

type affinityTerm struct {
	TopologyKey   string   `yaml:"topologyKey"`
	LabelSelector labelSet `yaml:"labelSelector"`
}

type labelSet struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type podSecurity struct {
	RunAsNonRoot   bool              `yaml:"runAsNonRoot"`
	RunAsUser      int               `yaml:"runAsUser"`
	FSGroup        int               `yaml:"fsGroup"`
	SeccompProfile map[string]string `yaml:"seccompProfile"`
}

type container struct {
	Name            string            `yaml:"name"`
	Image           string            `yaml:"image"`
	Command         []string          `yaml:"command"`
	Env             []variable        `yaml:"env"`
	Resources       resources         `yaml:"resources"`
	SecurityContext containerSecurity `yaml:"securityContext"`
	VolumeMounts    []mount           `yaml:"volumeMounts"`
}

type variable struct {
	Name      string     `yaml:"name"`
	Value     string     `yaml:"value,omitempty"`
	ValueFrom *valueFrom `yaml:"valueFrom,omitempty"`
}

type valueFrom struct {
	FieldRef fieldRef `yaml:"fieldRef"`
}

type fieldRef struct {
	FieldPath string `yaml:"fieldPath"`
}

type resources struct {
	Requests map[string]string `yaml:"requests"`
	Limits   map[string]string `yaml:"limits"`
}

type containerSecurity struct {
	AllowPrivilegeEscalation bool                `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool                `yaml:"readOnlyRootFilesystem"`
	Capabilities             map[string][]string `yaml:"capabilities"`
}

type mount struct {
	Name      string `yaml:"name"`
	MountPath string `yaml:"mountPath"`
	ReadOnly  bool   `yaml:"readOnly,omitempty"`
}

// volume has one of the kinds.
type volume struct {
	Name                  string        `yaml:"name"`
	ConfigMap             *configVolume `yaml:"configMap,omitempty"`
	PersistentVolumeClaim *claimVolume  `yaml:"persistentVolumeClaim,omitempty"`
	Image                 *imageVolume  `yaml:"image,omitempty"`
	EmptyDir              *emptyDir     `yaml:"emptyDir,omitempty"`
}

type configVolume struct {
	Name string `yaml:"name"`
}

type claimVolume struct {
	ClaimName string `yaml:"claimName"`
	ReadOnly  bool   `yaml:"readOnly"`
}

type imageVolume struct {
	Reference string `yaml:"reference"`
}

type emptyDir struct {
	Medium    string `yaml:"medium,omitempty"`
	SizeLimit string `yaml:"sizeLimit"`
}

type policySpec struct {
	FailurePolicy    string           `yaml:"failurePolicy"`
	MatchConstraints matchConstraints `yaml:"matchConstraints"`
	MatchConditions  []expression     `yaml:"matchConditions"`
	Variables        []expression     `yaml:"variables"`
	Validations      []validation     `yaml:"validations"`
}

type matchConstraints struct {
	ResourceRules []resourceRule `yaml:"resourceRules"`
}

type resourceRule struct {
	APIGroups   []string `yaml:"apiGroups"`
	APIVersions []string `yaml:"apiVersions"`
	Operations  []string `yaml:"operations"`
	Resources   []string `yaml:"resources"`
}

type expression struct {
	Name       string `yaml:"name"`
	Expression string `yaml:"expression"`
}

type validation struct {
	Expression string `yaml:"expression"`
	Message    string `yaml:"message"`
}

type bindingSpec struct {
	PolicyName        string   `yaml:"policyName"`
	ValidationActions []string `yaml:"validationActions"`
}
