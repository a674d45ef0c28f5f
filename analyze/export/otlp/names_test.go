package otlp

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

// prometheus is what a metric is called there, by the OpenTelemetry specification ("Prometheus and OpenMetrics Compatibility").
func prometheus(m Metric, data metricdata.Aggregation) []string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	switch {
	case m.Unit == "s":
		name += "_seconds"
	case m.Unit == "By":
		name += "_bytes"
	case m.Unit == "1":
		name += "_ratio"
	case !strings.HasPrefix(m.Unit, "{"):
		panic(m.Unit)
	}
	switch data.(type) {
	case metricdata.Histogram[float64]:
		return []string{name + "_bucket", name + "_sum", name + "_count"}
	case metricdata.Sum[int64]:
		return []string{name + "_total"}
	}
	return []string{name}
}

// everyMetric is a run in which each of them is sent, as Prometheus knows them: names, and their labels.
func everyMetric(t *testing.T) map[string]map[string]bool {
	run := playRank(t, 0, func(run *detecttest.Run) {
		toDevice(run, 28)
		run.Add(2, traces.Cow{Head: at(40), Mapping: "heap", User: 3})
		run.Add(1, traces.Lost{Head: at(41), Source: "hook", Table: "batch_next", Count: 2, Reason: "full"})
		stop(run)
	})
	b := newBackend()
	b.send(t, judged(t, run.Open(t)), Options{Sample: 1})
	rank := recorded(t, "rngduplicateranks")
	b.send(t, rank, Options{Sample: 1})
	known := map[string]map[string]bool{}
	for _, m := range b.metrics {
		for _, sent := range m.ScopeMetrics[0].Metrics {
			for _, name := range prometheus(Metric{sent.Name, sent.Unit, ""}, sent.Data) {
				if known[name] == nil {
					known[name] = map[string]bool{"job": true, "le": strings.HasSuffix(name, "_bucket")}
				}
				labels(sent.Data, known[name])
			}
		}
	}
	return known
}

func labels(data metricdata.Aggregation, into map[string]bool) {
	add := func(set attribute.Set) {
		for _, a := range set.ToSlice() {
			into[strings.ReplaceAll(string(a.Key), ".", "_")] = true
		}
	}
	switch d := data.(type) {
	case metricdata.Gauge[int64]:
		for _, p := range d.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			add(p.Attributes)
		}
	}
}

var (
	metricName = regexp.MustCompile(`\bdptrace_[a-z0-9_]+`)
	labelList  = regexp.MustCompile(`by \(([^)]*)\)|\{\{([a-z_]+)\}\}|\{([a-z_]+)=~`)
)

// The dashboard asks for what is really sent, by its name and its labels, and for each metric.
func TestDashboard(t *testing.T) {
	known := everyMetric(t)
	text, err := os.ReadFile("../../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			var has map[string]bool
			plain := regexp.MustCompile(`by \([^)]*\)`).ReplaceAllString(target.Expr, "")
			for _, name := range metricName.FindAllString(plain, -1) {
				if has = known[name]; has == nil {
					t.Errorf("%s: nothing is sent that is called %s", p.Title, name)
				}
				asked[name] = true
			}
			for _, m := range labelList.FindAllStringSubmatch(target.Expr+target.LegendFormat, -1) {
				for _, label := range strings.Split(m[1]+m[2]+m[3], ", ") {
					if !has[label] {
						t.Errorf("%s: nothing that is asked for has a label %s", p.Title, label)
					}
				}
			}
		}
	}
	for name := range known {
		if !asked[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
	for _, m := range Metrics {
		if name := strings.ReplaceAll(m.Name, ".", "_"); !strings.Contains(string(text), name) {
			t.Errorf("no panel shows %s", m.Name)
		}
	}
}

// The page lists each metric and what it is measured in.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/backends.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Metrics {
		if !strings.Contains(string(page), "| `"+m.Name+"` | "+m.Unit+" |") {
			t.Errorf("docs/backends.md does not list %s in %s", m.Name, m.Unit)
		}
	}
}
