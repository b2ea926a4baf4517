"""The part of SQL that questions need. What is not listed here is refused."""

from collections.abc import Mapping

from sqlglot import exp

FUNCTIONS: Mapping[type[exp.Expr], str] = {
    exp.Abs: "abs",
    exp.Avg: "avg",
    exp.Ceil: "ceil",
    exp.Coalesce: "coalesce",
    exp.Count: "count",
    exp.DateDiff: "date_diff",
    exp.DateTrunc: "date_trunc",
    exp.DenseRank: "dense_rank",
    exp.Extract: "extract",
    exp.Floor: "floor",
    exp.Greatest: "greatest",
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.Least: "least",
    exp.Length: "length",
    exp.Lower: "lower",
    exp.Max: "max",
    exp.Median: "median",
    exp.Min: "min",
    exp.Month: "month",
    exp.Nullif: "nullif",
    exp.Quarter: "quarter",
    exp.Rank: "rank",
    exp.Round: "round",
    exp.RowNumber: "row_number",
    exp.Sign: "sign",
    exp.Substring: "substring",
    exp.Sum: "sum",
    exp.TimestampTrunc: "date_trunc",
    exp.TimeToStr: "strftime",
    exp.Trim: "trim",
    exp.Upper: "upper",
    exp.Year: "year",
}
"""Functions that read nothing but their arguments, by the class sqlglot gives them, with DuckDB's name."""

STRUCTURE: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Subquery, exp.With, exp.CTE),
        *(exp.From, exp.Join, exp.Table, exp.TableAlias, exp.Where, exp.Group, exp.Having, exp.Qualify),
        *(exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Distinct, exp.Window, exp.WindowSpec, exp.Filter),
        *(exp.Column, exp.Identifier, exp.Alias, exp.Star, exp.Literal, exp.Boolean, exp.Null, exp.Placeholder),
        *(exp.Paren, exp.Tuple, exp.Interval, exp.Var, exp.Cast, exp.DataType, exp.DataTypeParam),
        *(exp.Case, exp.If, exp.Exists, exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Is),
        *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
        *(exp.Like, exp.ILike, exp.Escape, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg),
        *(exp.DPipe,),
    }
)
"""Every other kind of node a question may hold."""

PARTS: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {"with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "qualify", "order"}
        | {"limit", "offset"}
    ),
    exp.Table: frozenset({"this", "alias", "joins", "db", "catalog"}),  # the last two are judged with the name
    exp.TableAlias: frozenset({"this"}),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Subquery: frozenset({"this", "alias", "with_", "order", "limit", "offset"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Star: frozenset(),
    exp.Join: frozenset({"this", "on", "using", "side", "kind"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.Cast: frozenset({"this", "to"}),
}
"""For nodes with optional parts, the parts that may be there: no INTO, locks, hints, samples or pivots."""

CAST_TYPES = frozenset(
    {
        exp.DataType.Type.BOOLEAN,
        exp.DataType.Type.SMALLINT,
        exp.DataType.Type.INT,
        exp.DataType.Type.BIGINT,
        exp.DataType.Type.INT128,
        exp.DataType.Type.DECIMAL,
        exp.DataType.Type.DOUBLE,
        exp.DataType.Type.DATE,
        exp.DataType.Type.TIMESTAMP,
        exp.DataType.Type.VARCHAR,
        exp.DataType.Type.TEXT,
    }
)
"""What a value may be cast to."""
