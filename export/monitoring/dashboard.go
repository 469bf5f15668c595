package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// schemaVersion is the version of dashboards that Grafana 11 writes. Newer ones migrate it.
const schemaVersion = 39

// dashboard is a dashboard as Grafana imports it. The types have the parts of its schema that are
// used here (github.com/grafana/grafana-foundation-sdk).
type dashboard struct {
	Title         string            `json:"title"`
	Description   string            `json:"description"`
	Tags          []string          `json:"tags"`
	SchemaVersion int               `json:"schemaVersion"`
	Refresh       string            `json:"refresh"`
	Time          map[string]string `json:"time"`
	Templating    list              `json:"templating"`
	Annotations   list              `json:"annotations"`
	Panels        []panel           `json:"panels"`
}

type list struct {
	List []any `json:"list"`
}

type variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Query      string      `json:"query"`
	Datasource *datasource `json:"datasource,omitempty"`
	IncludeAll bool        `json:"includeAll,omitempty"`
	Multi      bool        `json:"multi,omitempty"`
	AllValue   string      `json:"allValue,omitempty"`
	Refresh    int         `json:"refresh,omitempty"`
	Current    *current    `json:"current,omitempty"`
}

type current struct {
	Text  []string `json:"text"`
	Value []string `json:"value"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID          int          `json:"id"`
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	GridPos     position     `json:"gridPos"`
	Collapsed   *bool        `json:"collapsed,omitempty"` // of a row
	Panels      []panel      `json:"panels,omitzero"`     // of a row
	Datasource  *datasource  `json:"datasource,omitempty"`
	Targets     []target     `json:"targets,omitempty"`
	FieldConfig *fieldConfig `json:"fieldConfig,omitempty"`
	Options     *options     `json:"options,omitempty"`
}

type position struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

type fieldConfig struct {
	Defaults  defaults `json:"defaults"`
	Overrides []any    `json:"overrides"`
}

type defaults struct {
	Unit       string      `json:"unit"`
	Min        float64     `json:"min"`
	Thresholds *thresholds `json:"thresholds,omitempty"`
	Custom     custom      `json:"custom"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"` // nil: from the lowest value on
}

type custom struct {
	FillOpacity     float64           `json:"fillOpacity"`
	Stacking        *stacking         `json:"stacking,omitempty"`
	ThresholdsStyle map[string]string `json:"thresholdsStyle,omitempty"`
}

type stacking struct {
	Mode  string `json:"mode"`
	Group string `json:"group"`
}

type options struct {
	Legend  legend            `json:"legend"`
	Tooltip map[string]string `json:"tooltip"`
}

type legend struct {
	DisplayMode string   `json:"displayMode"`
	Placement   string   `json:"placement"`
	ShowLegend  bool     `json:"showLegend"`
	Calcs       []string `json:"calcs"`
}

// The grid of a dashboard has 24 columns.
const (
	gridColumns = 24
	panelWidth  = 8
	panelHeight = 8
)

// Variables of the dashboard: the data source, and the servers that it shows.
const (
	source   = "${datasource}"
	instance = `instance=~"$instance"`
)

// page lays panels out, row by row.
type page struct {
	panels []panel
	x, y   int
}

func (p *page) row(title string) {
	p.newLine()
	open := false
	p.panels = append(p.panels, panel{ID: len(p.panels) + 1, Type: "row", Title: title, GridPos: position{1, gridColumns, 0, p.y}, Collapsed: &open, Panels: []panel{}})
	p.y++
}

func (p *page) newLine() {
	if p.x > 0 {
		p.x, p.y = 0, p.y+panelHeight
	}
}

// chart is a panel with lines over time.
type chart struct {
	title, about, unit string
	limit              float64 // a red line; 0: none
	isStacked          bool
	targets            []target
}

func (p *page) add(c chart) {
	if p.x+panelWidth > gridColumns {
		p.newLine()
	}
	for i := range c.targets {
		c.targets[i].RefID = string(rune('A' + i))
	}
	field := defaults{Unit: c.unit, Custom: custom{FillOpacity: 10}}
	if c.isStacked {
		field.Custom = custom{FillOpacity: 60, Stacking: &stacking{"normal", "A"}}
	}
	if c.limit > 0 {
		field.Thresholds = &thresholds{"absolute", []step{{"green", nil}, {"red", &c.limit}}}
		field.Custom.ThresholdsStyle = map[string]string{"mode": "line"}
	}
	p.panels = append(p.panels, panel{
		ID: len(p.panels) + 1, Type: "timeseries", Title: c.title, Description: c.about, GridPos: position{panelHeight, panelWidth, p.x, p.y},
		Datasource: &datasource{"prometheus", source}, Targets: c.targets, FieldConfig: &fieldConfig{field, []any{}},
		Options: &options{legend{"list", "bottom", true, []string{}}, map[string]string{"mode": "multi", "sort": "desc"}},
	})
	p.x += panelWidth
}

// Dashboard returns the JSON of a dashboard with the server's load, and a row for each model.
func (s Server) Dashboard() ([]byte, error) {
	var p page
	s.addServer(&p)
	for _, m := range s.Models {
		m.addTo(&p)
	}
	return s.encode(p)
}

func (s Server) encode(p page) ([]byte, error) {
	all := variable{
		Name: "instance", Label: "server", Type: "query", Query: fmt.Sprintf("label_values(%s%s, instance)", succeeded, s.Models[0].selector()),
		Datasource: &datasource{"prometheus", source}, IncludeAll: true, Multi: true, AllValue: ".*", Refresh: 2,
		Current: &current{[]string{"All"}, []string{"$__all"}},
	}
	d := dashboard{
		Title: s.Name + " on Triton", Description: "Written by tuner export. Red lines are the thresholds of the alerts.", Tags: []string{"triton", "tuner"},
		SchemaVersion: schemaVersion, Refresh: "30s", Time: map[string]string{"from": "now-3h", "to": "now"},
		Templating:  list{[]any{variable{Name: "datasource", Label: "data source", Type: "datasource", Query: "prometheus"}, all}},
		Annotations: list{[]any{}}, Panels: p.panels,
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("cannot write the dashboard: %w", err)
	}
	return b.Bytes(), nil
}

// lines makes a target of each pair of an expression and its legend.
func lines(pairs ...string) []target {
	var list []target
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, target{Expr: pairs[i], LegendFormat: pairs[i+1]})
	}
	return list
}

const perServer = "{{instance}}"

func (s Server) addServer(p *page) {
	p.row("Servers")
	p.add(chart{title: "Load, of what a server was tuned for", about: s.tuned() + " Above the line a server has no reserve for bursts.", unit: "percentunit", limit: LoadShare,
		targets: lines(s.load(instance), perServer)})
	p.add(chart{title: "CPU of the machine", unit: "percentunit", targets: lines("nv_cpu_utilization{"+instance+"}", perServer)})
	if s.HasGPUs {
		p.add(chart{title: "GPU", unit: "percentunit", targets: lines("nv_gpu_utilization{"+instance+"}", perServer+" {{gpu_uuid}}")})
		p.add(chart{title: "GPU memory", unit: "bytes", targets: lines("nv_gpu_memory_used_bytes{"+instance+"}", perServer+" {{gpu_uuid}}")})
		return
	}
	p.add(chart{title: "Memory of the machine", unit: "bytes", targets: lines("nv_cpu_memory_used_bytes{"+instance+"}", perServer)})
}

func (m Model) addTo(p *page) {
	p.row("Model " + m.Name)
	p.add(chart{title: "Requests", about: fmt.Sprintf("A server was tuned for %s requests/s.", number(m.Requests)), unit: "reqps", limit: m.Requests,
		targets: lines(m.rate(succeeded, instance), perServer)})
	p.add(chart{title: "Time in the queue", about: "Mean per request.", unit: "µs", limit: inMicros(m.QueueLimit()),
		targets: lines(m.queueTime(instance), perServer)})
	p.add(chart{title: "Latency in the server", about: "Percentiles of the last minute. The way from and to the client comes on top.", unit: "µs", limit: inMicros(m.P99Limit()),
		targets: lines(m.percentile("0.99", instance), perServer+" p99", m.percentile("0.5", instance), perServer+" p50")})
	p.add(chart{title: "Where the time goes", about: "Mean per request, over all shown servers.", unit: "µs", isStacked: true, targets: lines(
		m.share("queue"), "queue", m.share("compute_input"), "compute input", m.share("compute_infer"), "compute infer", m.share("compute_output"), "compute output")})
	p.add(chart{title: "Inferences per execution", about: "Mean size of the executed batches.", unit: "short",
		targets: lines(m.rate("nv_inference_count", instance)+" / "+m.rate("nv_inference_exec_count", instance), perServer)})
	p.add(chart{title: "Failures and waiting requests", about: "Failed requests per second by reason, and requests that wait for an instance.", unit: "short", targets: lines(
		fmt.Sprintf("sum without (%s) (rate(%s%s[%s]))", series, failed, m.selector(instance), window), perServer+" failed: {{reason}}",
		fmt.Sprintf("sum without (%s) (nv_inference_pending_request_count%s)", series, m.selector(instance)), perServer+" waiting")})
}

// share returns the mean of a part of the time of a request, over all servers.
func (m Model) share(part string) string {
	total := func(counter string) string {
		return fmt.Sprintf("sum(rate(%s%s[%s]))", counter, m.selector(instance), window)
	}
	return fmt.Sprintf("%s / %s", total("nv_inference_"+part+"_duration_us"), total(succeeded))
}

func inMicros(d time.Duration) float64 { return float64(d.Microseconds()) }
