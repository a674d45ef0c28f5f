package otlp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// calls counts what clients do by themselves.
type calls struct{ again, refused atomic.Int64 }

type attemptsKey struct{}

// watched is a context in which the attempts of one request are counted.
func (c *calls) watched(ctx context.Context) context.Context {
	attempts := new(atomic.Int64)
	ctx = context.WithValue(ctx, attemptsKey{}, attempts)
	// The HTTP clients let nobody between them and their TLS; what they write can be seen. gRPC's own
	// connections are made outside of the call's context.
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { c.attempt(attempts) }})
}

// count is of a call of gRPC that has ended.
func (c *calls) count(ctx context.Context, refused bool) {
	if attempts, ok := ctx.Value(attemptsKey{}).(*atomic.Int64); ok {
		c.attempt(attempts)
	}
	if refused {
		c.refused.Add(1)
	}
}

func (c *calls) attempt(attempts *atomic.Int64) {
	if attempts.Add(1) > 1 {
		c.again.Add(1)
	}
}

// partial is how the clients tell what a server took only a part of (since otel
// 1.47; their type for it is internal).
var partial = regexp.MustCompile(`(?s)OTLP partial success: (.*) \((\d+) [a-z ]+ rejected\)`)

// outcome is what came of a request.
type outcome struct {
	rejected int    // of its items
	reason   string // "" all was taken
	again    bool   // nothing was, and it may be repeated
	foreign  bool   // the server does not know this kind of data
}

func outcomeOf(err error) outcome {
	if err == nil {
		return outcome{}
	}
	if m := partial.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[2]) // digits
		return outcome{rejected: n, reason: m[1]}
	}
	o := outcome{rejected: -1, reason: err.Error()}
	if s, ok := status.FromError(err); ok {
		o.reason = s.Code().String() + ": " + s.Message()
		switch s.Code() {
		case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
			o.again = true
		case codes.Unimplemented:
			o.foreign = true
		}
		return o
	}
	var dial *net.OpError
	var sent *url.Error
	o.again = errors.As(err, &dial) || errors.As(err, &sent) || errors.Is(err, context.DeadlineExceeded) ||
		strings.Contains(err.Error(), "retry-able request failure") // http: 429, 502, 503, 504
	o.foreign = strings.Contains(err.Error(), ": "+strconv.Itoa(http.StatusNotFound)+" ")
	return o
}
