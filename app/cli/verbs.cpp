#include "app/cli/verbs.h"

#include "engine/gallery/gallery.h"
#include "engine/hardware/cluster.h"
#include "engine/hardware/framework.h"
#include "engine/interop/configs/config_formats.h"
#include "engine/interop/configs/config_search.h"

namespace planloom::cli {

namespace {

using Options = std::vector<OptionSpec>;

OptionSpec jsonOption()
{
    return {"json", "", "print one JSON object on standard output"};
}

Options joined(std::initializer_list<Options> lists)
{
    Options all;
    for (const Options &list : lists)
        all.insert(all.end(), list.begin(), list.end());
    return all;
}

Options modelOptions()
{
    return {{"dim", "NAME=SIZE", "size of a dimension that the model's inputs leave open (may be repeated)"},
        {"parameter", "NAME", "a stored tensor that is trained, whatever the file says (may be repeated)"},
        {"constant", "NAME", "a stored tensor that is not trained (may be repeated)"},
        {"as-input", "NAME", "what is an input, whatever the file says or seems to say (may be repeated)"},
        {"operators", "FILE",
            "operator file that says what operators are (may be repeated; MODEL.ops beside the model is read "
            "anyway)"},
        {"capacity", "[NAME=]ROOM",
            "room in every sample for what data choose, as the tokens of an expert: 1.25x (of the expected "
            "load), 128, all; NAME: of one operator (may be repeated; default: 1x)"},
        {"unroll", "NAME|all",
            "an LSTM, GRU or RNN as the operators of its steps, so that its hidden dimension splits (may be "
            "repeated)"},
        {"loss", "NAME", "the output to train on (default: the scalar output \"loss\")"}, jsonOption()};
}

std::vector<std::string> galleryNames()
{
    std::vector<std::string> names;
    for (const GalleryEntry &entry : builtInGallery().entries)
        names.push_back(entry.name);
    return names;
}

/// How a plan is made of a model.
Options planOptions()
{
    return {{"cluster", "C",
                "profile with a size (dgx-h100:8, cpu:4) or a JSON file (default: cpu with --devices)",
                clusterNames()},
        {"framework", "F",
            "what trains on it: megatron, fsdp, fsdp-compiled, deepspeed, nanotron or planloom (default: "
            "none; kernels as timings have them)",
            frameworkNames()},
        {"devices", "N", "number of devices (default: the cluster's)"},
        {"gallery", "NAME[:KEY=VALUE,...]",
            "rows of a gallery plan, such as 3d:dp=2,tp=2,pp=2 (planloom-cli gallery all lists them)",
            galleryNames()},
        {"table", "FILE",
            "constraint table, text or JSON, or partition constraints of autodist (.yaml); its rows come "
            "after the gallery's"},
        {"axis", "NAME", "axis of the mesh that partition constraints of autodist are about (default: tp)"},
        {"micro-batches", "M", "number of micro-batches (a row of its own)"},
        {"recompute", "none|selective|full",
            "what the backward pass computes again: nothing, activations and norms, or every layer (a row of "
            "its own)"},
        {"zero", "0|1|2|3",
            "what replicas cut among themselves: nothing, optimizer states, gradients too, weights too (a "
            "row of its own)"},
        {"offload", "none|states|activations|both",
            "what waits in host memory: optimizer states, or what the backward pass reads (rows of their "
            "own)"},
        {"precision", "fp32|tf32|bf16|fp16|fp8",
            "number formats of all operators (a row of its own; default: bf16 on accelerators, fp32 on "
            "CPUs)"},
        {"attention", "fused|plain",
            "whether attentions keep their probabilities in memory (a row of its own; default: fused)"},
        {"optimizer", "sgd|adamw", "optimizer of the training step (default: adamw)"},
        {"learning-rate", "X", "its learning rate (default: 0.001)"},
        {"weight-decay", "X", "its weight decay (default: 0)"},
        {"clip-norm", "X", "clip gradients: at most so large is the norm of all of them (default: 0, any)"},
        {"inference", "", "plan the forward pass alone, also for a model with a loss"}};
}

/// How a plan is made of rows that leave something open.
Options leftOpenOptions()
{
    return {{"allow-copies", "",
                "a gallery plan whose replicas compute more than half of the model alike is a plan, too"},
        {"no-search", "",
            "what rows leave open is decided by the default rule (follow the producer, else replicate), as "
            "with --gallery, not searched for the best"}};
}

VerbSpec infoVerb()
{
    return {"info", "MODEL", "operators, tensors, parameters, what was fused and what is not understood",
        modelOptions(), "planloom-cli info model.onnx --dim batch=8"};
}

VerbSpec solveVerb()
{
    return {"solve", "MODEL",
        "finds the best plan within the rows; prints step time, memory, traffic and bubble per device",
        joined({planOptions(), leftOpenOptions(),
            {{"suggest", "", "with --json: rows that would make the plan faster or smaller, each simulated"},
                {"watch", "FILE",
                    "solves the table in FILE anew whenever it changes; a line for every grade of every "
                    "answer, until interrupted"},
                {"schedule", "best|NAME",
                    "the order of the pipeline's blocks: 1f1b, zb-v, dualpipe, ... in place of the rows'; "
                    "best: the shortest simulated step of all of them and of what a search finds"},
                {"for", "FORMAT",
                    "the best plan that a framework's config says whole: megatron, torchtitan, fsdp, "
                    "deepspeed, ...; and what the best of all would gain beyond it",
                    searchedFormatNames()},
                {"out", "PLAN", "write the plan to a file"}},
            modelOptions()}),
        "planloom-cli solve 'zoo:gpt?layers=12' --cluster dgx-h100:8 --out plan.json"};
}

VerbSpec scheduleVerb()
{
    return {"schedule", "PLACEMENT",
        "finds the best pipeline schedule for a placement of blocks (JSON), and proves how good it is; plays "
        "a schedule of torch.distributed.pipelining (CSV)",
        {{"micro-batches", "N", "how many to schedule (default: enough to see the steady state)"},
            {"memory", "M", "limit of every device, in place of the file's"},
            {"template", "NAME",
                "this schedule in place of a search: gpipe, 1f1b, interleaved, zb-v, dualpipe, ..."},
            {"time-limit", "S", "seconds (default: 5)"},
            {"picture", "FILE.svg", "write the schedule as a picture"},
            {"csv", "FILE", "write the order for torch.distributed.pipelining"},
            {"csv-format", "compute_only|compute_comms",
                "whether it has what is communicated (default: as a CSV that was read, else compute_only)"},
            jsonOption()},
        "planloom-cli schedule placement.json --micro-batches 8 --picture schedule.svg", {},
        "A block that takes memory may have \"recompute\": {\"until\": ID, \"time\": T, \"memory\": M}: M of "
        "it is dropped and computed again by block ID, which takes T longer; and \"offload\": {..., "
        "\"queue\": Q, \"back_time\": T, \"back_queue\": Q}: M is copied away behind it, in T on queue Q, "
        "and back before block ID. The search decides which blocks do so. \"workspace\": M is held while a "
        "block runs; \"once\": true runs once a step, before the micro-batches (weights are gathered) or "
        "behind them (gradients are reduced)"};
}

VerbSpec simulateVerb()
{
    return {"simulate", "PLAN", "predicted timeline, memory and communication of a plan file",
        {{"cluster", "C", "another cluster than the plan was made for", clusterNames()},
            {"one-queue", "", "all communication waits in one queue, whatever the cluster says"},
            {"blocking-sends", "",
                "a device computes nothing while it sends to another stage, whatever the cluster says"},
            {"trace", "FILE", "write the timeline as a Perfetto trace"},
            {"idle", "", "say why devices are idle, and how long for each reason"},
            {"peak", "", "say what the fullest device holds as it is fullest"}, jsonOption()},
        "planloom-cli simulate plan.json --trace trace.json --idle"};
}

VerbSpec fitsVerb()
{
    return {"fits", "PLAN|MODEL",
        "whether every rank's memory is enough, and what the fullest one holds: status 0 if it is, 1 if not",
        joined({planOptions(), leftOpenOptions(), {{"csv", "FILE", "write what every rank holds, by kind"}},
            modelOptions()}),
        "planloom-cli fits zoo:llama-3-70b --cluster dgx-h100:64 --gallery 3d:tp=8,pp=4"};
}

VerbSpec compareVerb()
{
    return {"compare", "A B",
        "two plan files: what B does differently from A, and where its time goes; two models: operators that "
        "are "
        "new, gone, changed or renamed",
        {{"at-most", "RATIO", "plans: exit with status 1 if B's step takes more than RATIO times A's"},
            {"cluster", "C", "plans: another cluster than they were made for", clusterNames()},
            {"dim", "NAME=SIZE",
                "models: size of a dimension that their inputs leave open (may be repeated)"},
            {"operators", "FILE", "models: operator file that says what operators are (may be repeated)"},
            jsonOption()},
        "planloom-cli compare before.json after.json --at-most 1.02"};
}

VerbSpec communicationVerb()
{
    return {"communication", "PLAN",
        "every collective and message of a plan's step: groups, link, size, how often, the algorithm that "
        "NCCL is "
        "taken to choose, when, and how much of it is exposed",
        {{"csv", "FILE", "write all of it as a table"},
            {"cluster", "C", "another cluster than the plan was made for", clusterNames()}, jsonOption()},
        "planloom-cli communication plan.json --csv communication.csv"};
}

VerbSpec reportVerb()
{
    return {"report", "PLAN|SESSION",
        "writes a plan, or what a session stands at, as one HTML file that needs nothing beside it: "
        "timeline, "
        "figures, memory by rank, communication, operators, rows",
        {{"with", "PLAN|SESSION", "a second one, which is held against the first"},
            {"out", "FILE.html|FILE.pdf",
                "where to (default: standard output; a PDF where the window is installed, too)"},
            {"cluster", "C", "another cluster than the plan was made for", clusterNames()}, jsonOption()},
        "planloom-cli report plan.json --with other.json --out report.html"};
}

VerbSpec checkAnnotationVerb()
{
    return {"check-annotation", "NAME|FILE",
        "tries out on numbers how operators may be split: one that Planloom knows, all, or those of an "
        "operator file",
        {{"operator", "NAME", "one operator of the file (default: all)"},
            {"size", "DIM=N", "size of a dimension of the annotation (may be repeated)"},
            {"shape", "INPUT=N,N", "shape of an input that the annotation says nothing of (may be repeated)"},
            {"range", "INPUT=LOW:HIGH", "from where an input is drawn (may be repeated; default: -1:1)"},
            {"attribute", "NAME=X", "a number for an attribute that has no value (may be repeated)"},
            {"type", "float32|float64", "of inputs (default: float64 for bodies, float32 for libraries)"},
            {"tolerance", "X", "largest difference (default: 1e-10 for float64, 1e-5 for float32)"},
            {"seed", "S", "of the drawn numbers (default: 1)"}, jsonOption()},
        "planloom-cli check-annotation mine.ops --size k=4"};
}

VerbSpec verifyVerb()
{
    return {"verify", "PLAN", "proves from masks that the plan computes its model, or says where it does not",
        {jsonOption()}, "planloom-cli verify plan.json"};
}

VerbSpec runVerb()
{
    return {"run", "MODEL|PLAN", "executes on GPUs, or on emulated devices of the CPU or of one GPU",
        joined({planOptions(),
            {{"backend", "cpu|cuda|cuda-emulated|torch",
                 "what executes: cpu (the default); cuda: each device on a GPU of this machine, in a process "
                 "of its own; cuda-emulated: all devices on one GPU; or torch: as exported PyTorch code, "
                 "started by torchrun"},
                {"python", "PATH",
                    "torch: the Python that has it (default: python3 of the environment or PATH)"},
                {"events", "",
                    "torch: print what the run tells, spans too, as lines of JSON as planloom-exec does"},
                {"steps", "K", "training steps (default: 1)"},
                {"inputs", "PATH",
                    "an .npz with in.<name> members, or a folder of <name>.npy (default: drawn)"},
                {"data", "PATH|synthetic",
                    "batches: a folder with an .npz or a folder of <input>.npy for each step, or arrays with "
                    "the steps as their first dimension; synthetic: drawn anew in each step (default: every "
                    "step has the same batch)"},
                {"rate-schedule", "constant|cosine[:KEY=N,...]",
                    "of the learning rate: constant:warmup=10, or cosine:warmup=10,total=100,floor=0.1, a "
                    "share of the rate (default: constant; total: the run's last step)"},
                {"checkpoint", "DIR",
                    "write weights and optimizer states there at the end, and when Ctrl-C stops the run, as "
                    "step-N.safetensors"},
                {"checkpoint-every", "K", "and after every K steps"},
                {"resume", "PATH",
                    "go on from a checkpoint, or from the last one of a folder, under this plan, for --steps "
                    "more steps"},
                {"dump", "DIR", "write loss.npy, out/, grad/ and weight/ as .npy files"},
                {"check", "", "compare with the unpartitioned model"},
                {"ranks", "N",
                    "processes that hold the devices, with the same outcome (default: 1; at most one a "
                    "device)"},
                {"no-sharing", "",
                    "devices on the CPU compute everything themselves, also what another one computes alike: "
                    "slower, the same bits"},
                {"prepare", "DIR",
                    "write what planloom-exec runs, plan.json and options.json, and run nothing"},
                {"allow-library", "PATH",
                    "shared library of an operator file that may run (may be repeated; those of files named "
                    "with --operators and in the user's folder may)"},
                {"seed", "S", "seed of dropout and drawn inputs (default: 1)"},
                {"random-weights", "S", "draw weights that have no values, from this seed"},
                {"trace", "FILE", "write the predicted timeline as a Perfetto trace"}},
            modelOptions()}),
        "planloom-cli run plan.json --steps 2 --check"};
}

VerbSpec importVerb()
{
    return {"import", "FILE",
        "reads a launch script or training config of another framework as a design: model, cluster and rows, "
        "each with the key that it follows from",
        {{"format", "F", "whose config it is (default: the one with most keys that are known)",
             configFormatNames()},
            {"cluster", "C", "profile of the devices, which no config names (default: dgx-h100)",
                clusterNames()},
            {"devices", "N", "number of devices, where the file does not say"},
            {"model", "MODEL", "the model, where the file has no sizes of one"},
            {"set", "NAME=VALUE", "a variable that a script leaves to its caller (may be repeated)"},
            {"function", "NAME", "of a Python file that makes several configs"},
            {"out", "FILE", "write the rows, or a session where the name ends in .planloom"}, jsonOption()},
        "planloom-cli import train.sh --set NNODES=4 --out rows.txt", {},
        "Nothing of the file is run, and no file that it names is opened. Status 1 if it contradicts itself, "
        "or makes no "
        "design"};
}

std::vector<std::string> exportFormats()
{
    std::vector<std::string> formats{"perfetto", "torch", "torch-modules", "chakra"};
    const std::vector<std::string> configs = configFormatNames();
    formats.insert(formats.end(), configs.begin(), configs.end());
    return formats;
}

VerbSpec exportVerb()
{
    return {"export", "PLAN", "writes a plan for another tool",
        {{"format", "FORMAT",
             "perfetto: its predicted timeline; torch: a folder of PyTorch code that runs under torchrun; "
             "torch-modules: one with PyTorch's own parallelism on your nn.Module, refused where that has no "
             "words for a row; "
             "chakra: a folder with an execution trace of every rank; or the config of a framework "
             "(megatron, bridge, verl, nemo-rl, torchtitan, deepspeed, accelerate, "
             "nanotron, nnscaler): status 1 if that leaves rows out (default: perfetto)",
             exportFormats()},
            {"out", "FILE|FOLDER",
                "where to (default: standard output; of torch, torch-modules and chakra, a folder)"},
            {"weights", "", "torch: with the weights that the model's files have"},
            {"module", "PACKAGE.MODULE:FUNCTION", "torch-modules: the function that makes your module"},
            {"leave-out", "",
                "torch-modules: without the rows that can't be said; status 1 where there are any"},
            {"ranks", "mpirun|slurm|cuda-visible-devices",
                "of a config: in its place, which device each rank of the framework runs on, so that the "
                "plan's devices do what it has them do: a rankfile, a SLURM_HOSTFILE, or the order of GPUs"},
            {"hosts", "NAME,...", "with --ranks: a host for each node, in the plan's order"},
            {"cluster", "C", "another cluster than the plan was made for", clusterNames()}, jsonOption()},
        "planloom-cli export plan.json --format torch --out folder"};
}

VerbSpec traceVerb()
{
    return {"trace", "FILE|FOLDER...",
        "analyses a measured run by the traces of its ranks: compute, communication, idle time by reason, "
        "who "
        "comes last",
        {{"plan", "PLAN",
             "the plan that ran: every instruction's time beside what is predicted for it, and what only one "
             "of "
             "the two has"},
            {"cluster", "C", "another cluster than the plan was made for", clusterNames()},
            {"with", "FILE|FOLDER", "another trace to compare with: differences by kind and by name"},
            {"ranks", "A,B", "compares these two ranks"},
            {"quick", "", "a first picture, of a sample of the events: seconds for gigabytes"},
            {"csv", "FILE", "write what each rank's time goes into"},
            {"perfetto", "FILE", "write all ranks on one clock as one Perfetto trace"},
            {"no-cache", "", "read the files anew, and keep nothing for the next time"}, jsonOption()},
        "planloom-cli trace profiles/ --csv ranks.csv", {},
        "Traces are those of torch.profiler (JSON, also .gz), what nsys export --type sqlite made of a "
        "report, and "
        "logs of an exported program (train.py --log-file LOG.jsonl --spans). A file has one rank, whose "
        "number it "
        "or its name says. What was read is kept in the user's cache, so that the next time takes a second"};
}

VerbSpec galleryVerb()
{
    return {"gallery", "NAME[:KEY=VALUE,...]|all",
        "lists the gallery's plans; shows one; with --model, the rows that it makes and their effect",
        joined({planOptions(), {{"model", "MODEL", "the model that the rows are for"}}, modelOptions()}),
        "planloom-cli gallery 3d:dp=2,tp=2 --model zoo:gpt --devices 4", galleryNames()};
}

VerbSpec rowsVerb()
{
    return {"rows", "MODEL|PLAN",
        "prints or writes the rows of a gallery plan and a table, checked, or of a plan file",
        joined({planOptions(),
            {{"out", "FILE",
                "where to: text, .json, or .yaml for the partition constraints of autodist that they hold "
                "(default: standard output)"}},
            modelOptions()}),
        "planloom-cli rows zoo:gpt --devices 4 --gallery data-parallel"};
}

VerbSpec clusterVerb()
{
    return {"cluster", "",
        "makes a cluster file of times that were measured on a device: rates by number format and kind of "
        "kernel, links by nccl-tests; says how far off they are; or of files about machines",
        {{"topology", "FILE",
             "what NCCL_TOPO_DUMP_FILE, nvidia-smi topo -m or nvidia-smi -q wrote on a host, Slurm's "
             "topology.conf or "
             "topology.yaml, a system file of SimuMax or AIConfigurator (may be repeated)"},
            {"hosts", "N", "so many hosts like the one of --topology (default: those of the files)"},
            {"kernels", "FILE",
                "times of products, attention, experts and collectives (JSON: sections matmul, attention, "
                "moe, "
                "collective in rows of the columns that they name)"},
            {"collectives", "FILE",
                "what all_reduce_perf, all_gather_perf, ... of nccl-tests printed, one after the other; in "
                "place of the collectives of --kernels"},
            {"spans", "PATH",
                "what a run of a plan measured (may be repeated): a log of an exported PyTorch program "
                "(train.py --log-file FILE --spans), a folder of traces, or what planloom-cli trace reads"},
            {"plan", "PLAN", "with --spans: the plan file that ran"},
            {"device", "NAME",
                "the device whose times count, of a file with those of several; with --topology, what the "
                "devices "
                "are where its files do not say"},
            {"base", "C",
                "profile or JSON file that says what times can't: peaks, memory, links (default: the profile "
                "of the device; with --spans, the cluster that the plan was made for)"},
            {"out", "FILE.json", "where to (default: standard output)"}, jsonOption()},
        "planloom-cli cluster --kernels times.json --collectives nccl.txt --out cluster.json"};
}

VerbSpec sessionVerb()
{
    return {"session", "FILE",
        "shows a session file (rows, history, branches, names, runs), checks and repairs it",
        {{"table", "", "print its constraint table"},
            {"check", "", "read everything in it and say what is wrong"},
            {"repair", "NEW", "write what can be read of a damaged session to a new file"}, jsonOption()},
        "planloom-cli session --check design.planloom"};
}

VerbSpec lessonVerb()
{
    return {"lesson", "list|show|check [FOLDER|NAME]...",
        "lists the lessons that teach parallelism; shows one's text with its values; or tries all of one: "
        "models, values, claims, tasks with their solutions and wrong plans",
        {{"cluster", "C", "in place of the lesson's own", clusterNames()},
            {"framework", "F", "in place of the lesson's own", frameworkNames()}, jsonOption()},
        "planloom-cli lesson check my-lesson --cluster dgx-h100", {"list", "show", "check"},
        "NAME is a lesson of the list, FOLDER one with a lesson.md in it. Status 1 if a lesson has a fault"};
}

VerbSpec doctorVerb()
{
    return {"doctor", "",
        "says what this machine has and lacks for each thing that Planloom does, and how to get what is "
        "missing",
        {{"feature", "plan|cpu|window|gpu|gpus|torch", "this one alone: status 0 if it works, 1 if not"},
            jsonOption()},
        "planloom-cli doctor --feature gpus"};
}

} // namespace

const ProgramSpec &program()
{
    static const ProgramSpec kProgram = [] {
        ProgramSpec spec{.name = "planloom-cli",
            .version = PLANLOOM_VERSION,
            .meaning = "plans of distributed training, from the command line"};
        spec.paragraphs = {
            "MODEL is an .onnx or .pt2 file, or a model of the zoo (zoo:gpt?layers=12&hidden=768). PLAN is a "
            "file that solve --out wrote, TABLE a constraint table, and a cluster a profile with a size "
            "(dgx-h100:8) or a JSON file."};
        spec.verbs = {infoVerb(), solveVerb(), scheduleVerb(), simulateVerb(), fitsVerb(),
            communicationVerb(), reportVerb(), compareVerb(), checkAnnotationVerb(), verifyVerb(), runVerb(),
            importVerb(), exportVerb(), traceVerb(), galleryVerb(), rowsVerb(), clusterVerb(), sessionVerb(),
            lessonVerb(), doctorVerb()};
        spec.environment = {{"PLANLOOM_PLUGIN_PATH",
                                "folders, separated by colons, where the plugin planloom-cuda.so is looked "
                                "for, behind those of the installation"},
            {"PLANLOOM_LIBRARY_PATH",
                "folders, separated by colons, where NCCL, cuBLASLt and NVRTC are looked for first"},
            {"COLUMNS", "width of the help where standard output is no terminal"}};
        spec.files = {{"~/.cache/planloom",
            "plans that were solved, and what was measured on this machine; may be removed at any time"}};
        spec.seeAlso = {"planloom", "planloom-exec"};
        return spec;
    }();
    return kProgram;
}

} // namespace planloom::cli
