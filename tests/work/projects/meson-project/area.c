int area(int a, int b);
int area(int a, int b)
{
    return a * b;
}
