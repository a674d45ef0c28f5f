// Package backends tests what dptrace sends beside real backends, which `make
// backends` builds and starts: an OpenTelemetry Collector and Jaeger.
package backends
