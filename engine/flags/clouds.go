package flags

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"tuner/engine/api"
	"tuner/engine/frontends"
	"tuner/engine/sagemaker"
	"tuner/engine/vertexai"
	"tuner/internal/exit"
)

// cloudOptions are the options of the ports on which clouds call the server.
type cloudOptions struct {
	sageMaker, vertexAI frontends.Listen
	safeRange           string // of the other ports, with SageMaker's; "": any
	defaultModel        string // of Vertex AI; "": the only one
	environment         func(name string) string
}

// isPrediction reports whether Vertex AI has started the server. As in Triton, HTTP and gRPC are off
// then, and Vertex AI's port is on.
func (c *cloudOptions) isPrediction() bool { return c.environment("AIP_MODE") == "PREDICTION" }

// port returns the default of --vertex-ai-port.
func (c *cloudOptions) port() int {
	const usual = 8080
	if port, err := strconv.Atoi(c.environment("AIP_HTTP_PORT")); err == nil {
		return port
	}
	return usual
}

func (c *cloudOptions) flags(flags *pflag.FlagSet) {
	if c.environment == nil {
		c.environment = os.Getenv
	}
	c.sageMaker.Flag, c.vertexAI.Flag = "sagemaker-port", "vertex-ai-port"
	boolFlag(flags, &c.sageMaker.Enabled, "allow-sagemaker", false, "serve Amazon SageMaker's /ping and /invocations, for the model that its environment names")
	flags.IntVar(&c.sageMaker.Port, "sagemaker-port", 8080, "port for SageMaker, at the address of HTTP")
	flags.StringVar(&c.safeRange, "sagemaker-safe-port-range", "", "FIRST-LAST: with SageMaker, no other port may be outside")
	boolFlag(flags, &c.vertexAI.Enabled, "allow-vertex-ai", c.isPrediction(), "serve Google's Vertex AI under $AIP_HEALTH_ROUTE and $AIP_PREDICT_ROUTE; with AIP_MODE=PREDICTION it is the default, and HTTP and gRPC are off")
	flags.IntVar(&c.vertexAI.Port, "vertex-ai-port", c.port(), "port for Vertex AI, at the address of HTTP (default $AIP_HTTP_PORT, else 8080)")
	flags.StringVar(&c.defaultModel, "vertex-ai-default-model", "", "model of Vertex AI's predictions; without it the only one that is loaded")
}

// listens returns the listeners. SageMaker and Vertex AI have the address of HTTP.
func (c *cloudOptions) listens(address string) (sageMaker, vertexAI frontends.Listen) {
	sageMaker, vertexAI = c.sageMaker, c.vertexAI
	sageMaker.Address, vertexAI.Address = address, address
	return sageMaker, vertexAI
}

// problems finds other ports that SageMaker does not allow. The text is tritonserver's.
func (c *cloudOptions) problems(others map[string]frontends.Listen) (problems []string) {
	if c.safeRange == "" || !c.sageMaker.Enabled {
		return nil
	}
	low, high, _ := strings.Cut(c.safeRange, "-")
	first, err := strconv.Atoi(low)
	last, err2 := strconv.Atoi(high)
	if err != nil || err2 != nil {
		return []string{fmt.Sprintf("--sagemaker-safe-port-range=%q must be two ports, such as 9000-9010", c.safeRange)}
	}
	for _, name := range []string{"HTTP", "GRPC", "metrics", "Vertex AI"} {
		if l := others[name]; l.Enabled && (l.Port < first || l.Port > last) {
			problems = append(problems, fmt.Sprintf("The server cannot listen to %s requests at port %d, allowed port range is [%d, %d]", name, l.Port, first, last))
		}
	}
	return problems
}

// clouds makes the options of the ports that are open.
func (c *cloudOptions) clouds(address string) (clouds []frontends.Cloud, err error) {
	sageMaker, vertexAI := c.listens(address)
	if sageMaker.Enabled {
		routes, err := sagemaker.New(c.environment)
		if err != nil {
			return nil, exit.With(exit.Usage, err)
		}
		clouds = append(clouds, frontends.Cloud{Listen: sageMaker, Name: "Sagemaker", Routes: routes})
	}
	if vertexAI.Enabled {
		routes, err := vertexai.New(c.environment)
		if err != nil {
			return nil, exit.With(exit.Usage, err)
		}
		clouds = append(clouds, frontends.Cloud{
			Listen: vertexAI, Name: "Vertex AI", Routes: routes,
			Loaded: func(ready []api.IndexEntry) error { return routes.SetModel(c.defaultModel, ready) },
		})
	}
	return clouds, nil
}
