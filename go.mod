module ddp

go 1.26.0

require (
	github.com/google/uuid v1.6.0
	github.com/pelletier/go-toml/v2 v2.4.3
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.50.0
	golang.org/x/term v0.48.0
)
