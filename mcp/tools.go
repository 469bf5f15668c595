package mcp

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tuner/export"
	"tuner/internal/words"
	"tuner/model/precision/recipe"
)

// addTools adds all tools to a server of the protocol.
func (s *server) addTools(to *sdk.Server) {
	add(to, sdk.Tool{
		Name: "inspect_model", Title: "Inspect a model", Annotations: reads(),
		Description: "Reads an ONNX file or a Triton model folder. Returns its inputs and outputs with their shapes, the configuration that Triton would make of it, and what a campaign would assume: sizes of open dimensions, and precisions to try. It measures nothing. Check the sizes with the user before a campaign: figures depend on them.",
	}, s.inspect)
	add(to, sdk.Tool{
		Name: "start_campaign", Title: "Start a campaign", Annotations: writes(),
		Description: "Starts 'tuner run': it searches the best configuration of a model by measuring, and writes reports, a Triton model repository and a Helm chart into its output folder. It returns an id at once, and measures for the budget, 10 minutes by default. One campaign runs at a time. The same call on the same folder resumes a campaign, and a larger budget continues it. Give model, or profile for a profile.yaml of the user, whose fields then decide everything else.",
	}, s.start, oneOf("mode", "online", "offline"), oneOf("precision", recipe.Names()...))
	add(to, sdk.Tool{
		Name: "campaign_status", Title: "Watch a campaign", Annotations: reads(),
		Description: fmt.Sprintf("Returns how far a campaign of this session is, and the best configuration so far with its certainty. With wait_seconds (at most %d) it waits for the end for that time, and reports progress meanwhile. Prefer waiting over asking often: each answer takes processor time from the measurement.", mostWait),
	}, s.status)
	add(to, sdk.Tool{
		Name: "stop_campaign", Title: "Stop a campaign", Annotations: writes(),
		Description: "Ends a campaign early, as Ctrl-C does. It keeps what was measured and writes the results of that. The same start_campaign call resumes it.",
	}, s.stop)
	add(to, sdk.Tool{
		Name: "read_answer", Title: "Read the answer", Annotations: reads(),
		Description: "Reads the result in the output folder of a campaign: the answer in sentences with 95 % intervals, the best configurations with their figures, and where report and repository lie.",
	}, s.read)
	add(to, sdk.Tool{
		Name: "explain", Title: "Explain the answer", Annotations: reads(),
		Description: "Says why the best configuration of a campaign is the best: what limits it, which knobs matter and by how much, predictions against measurements, and what was not tried.",
	}, s.explain)
	add(to, sdk.Tool{
		Name: "compare", Title: "Compare runs", Annotations: reads(),
		Description: "Compares the first run with each of the others: what changed per configuration and load with 95 % intervals, '~' where nothing is shown, who won and why that changed, and in which facts the runs differ. A run is the output folder of a campaign or a gate, the JSON of 'tuner perf', or a file of Model Analyzer or perf_analyzer.",
	}, s.compare)
	add(to, sdk.Tool{
		Name: "export", Title: "Export a deployment", Annotations: writes(),
		Description: "Writes deployment files for the best configuration of one campaign or several: model repository, README.md with the commands to run, and export.json. It contacts no other machine. The targets: " + export.TargetsHelp(),
	}, s.export, oneOf("target", export.Targets()...))
}

// reads describes tools that change nothing.
func reads() *sdk.ToolAnnotations {
	isOpen := false
	return &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &isOpen}
}

// writes describes tools that write files or run a campaign. They replace no file of the user.
func writes() *sdk.ToolAnnotations {
	isOpen, isDestructive := false, false
	return &sdk.ToolAnnotations{OpenWorldHint: &isOpen, DestructiveHint: &isDestructive}
}

// property are the words that an argument may have.
type property struct {
	name    string
	allowed []any
}

func oneOf(name string, allowed ...string) property {
	p := property{name: name}
	for _, word := range allowed {
		p.allowed = append(p.allowed, word)
	}
	return p
}

// add adds a tool. Its schemas follow from the types of its argument and its result. A wrong argument
// never reaches handle.
func add[In, Out any](to *sdk.Server, tool sdk.Tool, handle sdk.ToolHandlerFor[In, Out], enums ...property) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err) // a type of ours
	}
	for _, p := range schema.Properties {
		if slices.Contains(p.Types, "null") { // some clients refuse a list of types
			p.Type, p.Types = p.Types[len(p.Types)-1], nil
		}
	}
	for _, e := range enums {
		at := schema.Properties[e.name]
		if at.Items != nil {
			at = at.Items
		}
		at.Enum = e.allowed
	}
	tool.InputSchema = schema
	sdk.AddTool(to, &tool, handle)
}

// text makes a result with a text for people. The SDK adds the structured result.
func text(content string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: bounded(content)}}}
}

// progress tells the client how far a call is, if it asked for that.
func progress(ctx context.Context, req *sdk.CallToolRequest, done, total float64, message string) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ // a client that has gone needs none
		ProgressToken: token, Progress: done, Total: total, Message: words.Shorten(message, longestProgress),
	})
}

// longestProgress is the length of a message of progress, in characters.
const longestProgress = 200
