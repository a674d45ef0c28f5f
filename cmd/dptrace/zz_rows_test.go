package main
import ("testing";"fmt";"os";"github.com/dptrace/dptrace/traces")
func TestZZ(t *testing.T){ run,err:=traces.Open(os.Getenv("TR")); if err!=nil{t.Fatal(err)}
 run.Each([]string{"overhead","memory"}, func(b traces.Batch) error { switch r:=b.Rows.(type){ case []traces.Overhead: for _,x:=range r { fmt.Printf("ovh %+v\n",x)}; case []traces.Memory: for _,x:=range r { fmt.Println("mem",x.Proc,x.TsNS,x.CPUNS,x.Source)} }; return nil}) }
